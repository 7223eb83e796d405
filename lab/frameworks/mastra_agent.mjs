// Mastra.
import { KEY, MODEL_V1, PROMPT, SERVERS, TURNS, load, run } from "./setting.mjs";

const { MCPClient } = await load("@mastra/mcp");
const { Agent } = await load("@mastra/core/agent");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

const connection = ({ url, command, args }) => (url ? { url: new URL(url) } : { command, args });

await run(async () => {
  const servers = Object.fromEntries(SERVERS.map((server) => [server.name, connection(server)]));
  const tools = await new MCPClient({ servers }).listTools();
  const model = createOpenAICompatible({ name: "lab", baseURL: MODEL_V1, apiKey: KEY })("fake-model");
  const agent = new Agent({ id: "lab", name: "lab", instructions: "x", model, tools });
  const ended = await agent.generate(PROMPT, { maxSteps: TURNS });
  if (ended.error) throw ended.error;
  return ended.text;
});
