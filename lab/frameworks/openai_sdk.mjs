// OpenAI Agents SDK for JavaScript.
import { KEY, MODEL_V1, PREFIX, PROMPT, SERVERS, TURNS, load, run } from "./setting.mjs";

const sdk = await load("@openai/agents");
const { default: OpenAI } = await load("openai");

const connection = ({ name, url, command, args }) =>
  url ? new sdk.MCPServerStreamableHttp({ name, url }) : new sdk.MCPServerStdio({ name, command, args });

await run(async () => {
  sdk.setTracingDisabled(true);
  sdk.setOpenAIAPI("chat_completions");
  sdk.setDefaultOpenAIClient(new OpenAI({ baseURL: MODEL_V1, apiKey: KEY, maxRetries: 0 }));
  const mcpServers = SERVERS.map(connection);
  for (const server of mcpServers) await server.connect();
  const mcpConfig = PREFIX ? { includeServerInToolNames: true } : {};
  const agent = new sdk.Agent({ name: "lab", instructions: "x", model: "fake-model", mcpServers, mcpConfig });
  return (await sdk.run(agent, PROMPT, { maxTurns: TURNS })).finalOutput;
});
