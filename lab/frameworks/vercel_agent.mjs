// Vercel AI SDK, with @ai-sdk/mcp.
import { KEY, MODEL_V1, PROMPT, SERVERS, TURNS, load, run } from "./setting.mjs";

const { generateText, isStepCount } = await load("ai");
const { createMCPClient } = await load("@ai-sdk/mcp");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");

async function transport({ url, command, args }) {
  if (url) return { type: "http", url };
  const { StdioMCPTransport, Experimental_StdioMCPTransport } = await load("@ai-sdk/mcp/mcp-stdio");
  return new (StdioMCPTransport ?? Experimental_StdioMCPTransport)({ command, args });
}

await run(async () => {
  let tools = {};
  for (const server of SERVERS) {
    const client = await createMCPClient({ transport: await transport(server) });
    tools = { ...tools, ...(await client.tools()) };
  }
  const model = createOpenAICompatible({ name: "lab", baseURL: MODEL_V1, apiKey: KEY })("fake-model");
  const ended = await generateText({ model, tools, prompt: PROMPT, stopWhen: isStepCount(TURNS), maxRetries: 0 });
  return ended.text;
});
