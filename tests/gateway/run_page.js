// Run the first script of a page (stdin: [page, messages]) in a window whose parent notes what reaches it.
const vm = require("vm");
const [page, messages] = JSON.parse(require("fs").readFileSync(0, "utf8"));
const sent = [], got = [], listeners = [];
const host = { postMessage: (message) => sent.push(message) };
class MessageEvent {
  constructor(type, init) { this.type = type; this.data = init.data; this.from = init.source; }
  get source() { return this.from || null; }
}
const window = {
  addEventListener: (_, listener) => listeners.push(listener),
  dispatchEvent: (event) => listeners.forEach((listener) => listener(event)),
};
Object.defineProperty(window, "parent", { value: host, configurable: true });
const script = /<script>([^]*?)<\/script>/.exec(page);
const document = { scripts: [script], currentScript: script };
const context = vm.createContext({ window, document, MessageEvent, setTimeout });
if (script) { vm.runInContext(script[1], context); }
listeners.push((event) => got.push([event.data, event.source === window.parent]));
messages.forEach((message) => window.parent.postMessage(message, "*"));
window.dispatchEvent(new MessageEvent("message", { data: "answer", source: host }));
setTimeout(() => console.log(JSON.stringify({ sent, got })), 5);
