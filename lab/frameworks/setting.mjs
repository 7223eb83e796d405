// What the lab tells a framework's script, and how the script ends; setting.py says what the variables are.
// LAB_MODULES: the folder of node_modules that holds the framework.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

export const MODEL_V1 = `${process.env.LAB_MODEL}/v1`;
export const SERVERS = JSON.parse(process.env.LAB_SERVERS);
export const PREFIX = Boolean(process.env.LAB_PREFIX);
export const PROMPT = "Use the tools.";
export const TURNS = 400;
export const KEY = "lab";

const CONDITIONS = ["import", "node", "default", "require"];

function chosen(target) {
  if (Array.isArray(target)) return chosen(target[0]);
  if (typeof target !== "object" || target === null) return target;
  const found = CONDITIONS.find((condition) => condition in target);
  return found && chosen(target[found]);
}

// Node resolves a bare import beside the script; the frameworks are installed elsewhere.
export async function load(specifier) {
  const [, name, below] = specifier.match(/^(@[^/]+\/[^/]+|[^/]+)(\/.*)?$/);
  const folder = path.join(process.env.LAB_MODULES, name);
  const about = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
  const where = `.${below ?? ""}`;
  const table = about.exports ?? {};
  const file = chosen(table[where] ?? (where === "." ? (table.import ? table : about.module ?? about.main) : undefined));
  return import(pathToFileURL(path.join(folder, file ?? `${where}.js`)).href);
}

export async function run(main) {
  let code = 0;
  try {
    console.log("LAB ANSWER", await main());
  } catch (failure) {
    console.log("LAB FAILURE", failure?.stack ?? failure);
    code = 1;
  }
  process.exit(code); // some frameworks leave connections open
}
