// LangChain for JavaScript, with @langchain/mcp-adapters.
import { KEY, MODEL_V1, PREFIX, PROMPT, SERVERS, TURNS, load, run } from "./setting.mjs";

const { MultiServerMCPClient } = await load("@langchain/mcp-adapters");
const { ChatOpenAI } = await load("@langchain/openai");
const { createAgent } = await load("langchain");

const connection = ({ url, command, args }) =>
  url ? { transport: "http", url } : { transport: "stdio", command, args };

await run(async () => {
  const prefix = PREFIX ? { prefixToolNameWithServerName: true, additionalToolNamePrefix: "mcp" } : {};
  const mcpServers = Object.fromEntries(SERVERS.map((server) => [server.name, connection(server)]));
  const tools = await new MultiServerMCPClient({ ...prefix, mcpServers }).getTools();
  const model = new ChatOpenAI({ model: "fake-model", apiKey: KEY, maxRetries: 0, configuration: { baseURL: MODEL_V1 } });
  const said = { messages: [{ role: "user", content: PROMPT }] };
  const ended = await createAgent({ model, tools }).invoke(said, { recursionLimit: 2 * TURNS });
  return ended.messages.at(-1).content;
});
