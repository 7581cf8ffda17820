/** Loads a bundled function as after a cold start, many times in one process, with nothing shared. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Script } from "node:vm";

type Handler = (event: unknown) => Promise<{ readonly statusCode: number; readonly body: string }>;

const NAMES = "exports, require, module, process";
const fromNode = createRequire(import.meta.url);
const compiled = new Map<string, (...given: readonly unknown[]) => void>();

function compile(path: string): (...given: readonly unknown[]) => void {
  const known = compiled.get(path);
  if (known !== undefined) return known;
  const script = new Script(`(function (${NAMES}) {${readFileSync(path, "utf8")}\n})`, { filename: path });
  const made = script.runInThisContext() as (...given: readonly unknown[]) => void;
  compiled.set(path, made);
  return made;
}

/** `folder`: the bundle's folder. Files that the function loads later are not shared either. */
export function freshFunction(folder: string, env: Readonly<Record<string, string>>): Handler {
  const own = new Map<string, { exports: object }>();
  const itsProcess: unknown = Object.create(process, { env: { value: env } });
  const load = (file: string): object => {
    const known = own.get(file);
    if (known !== undefined) return known.exports;
    const module = { exports: {} };
    own.set(file, module);
    compile(join(folder, file))(module.exports, requireFrom, module, itsProcess);
    return module.exports;
  };
  const requireFrom = (name: string) => (name.startsWith("./") ? load(name.slice(2)) : fromNode(name));
  return (load("index.js") as { readonly handler: Handler }).handler;
}
