/**
 * Turns a bundle of split ES modules into CommonJS: one file of all that is loaded at once, and one for each that
 * waits. Only ES modules can be split, and only CommonJS can be loaded in the midst of a call: Lambda's Node does not
 * require ES modules.
 */
import { basename } from "node:path";
import { build, type Metafile, type OutputFile, type Plugin } from "esbuild";

export interface SplitBundle {
  readonly outputFiles: readonly OutputFile[];
  readonly metafile: Metafile;
}

export interface CommonJsBundle {
  /** of index.js */
  readonly eager: string;
  /** file name → code */
  readonly lazy: ReadonlyMap<string, string>;
}

type Outputs = Metafile["outputs"];
interface Members {
  /** the code of a file in the bundle; undefined: it stays a file of its own */
  readonly codeOf: (file: string) => string | undefined;
  /** false: they have run already, and one of which nothing is used is left out */
  readonly sideEffects: boolean;
}

const INDEX = "index.js";

/** Turns a bundle into CommonJS. Its entry is dist/index.js. */
export async function toCommonJs({ outputFiles, metafile: { outputs } }: SplitBundle): Promise<CommonJsBundle> {
  const texts = new Map(outputFiles.map(({ path, text }) => [basename(path), text]));
  const eager = new Set([...reachable(`dist/${INDEX}`, outputs)].map((path) => basename(path)));
  // Waiting chunks find their former chunks in index.js by these names. They are short, since cold starts load them.
  const names = new Map([...eager].filter((file) => file !== INDEX).map((file, at) => [file, `_${at}`]));
  const parts = [...names].map(([file, part]) => `export * as ${part} from "./${file}";`);
  const index = await bundle(`export * from "./${INDEX}";${parts.join("")}`, {
    sideEffects: true,
    codeOf: (file) => (eager.has(file) ? texts.get(file) : undefined),
  });
  const lazy = new Map<string, string>();
  for (const file of [...texts.keys()].filter((name) => !eager.has(name))) {
    const code = await bundle(texts.get(file) ?? "", {
      sideEffects: false,
      codeOf: (other) => (eager.has(other) ? sharedPart(other, names.get(other), outputs) : undefined),
    });
    lazy.set(file, code);
  }
  return { eager: withoutHints(index), lazy };
}

/**
 * Removes esbuild's export hints for importers of CommonJS: nobody imports the parts, and every cold start loads the
 * hints.
 */
function withoutHints(code: string): string {
  return code.replace(/0&&\(module\.exports=\{[^{}]*\}\);\s*$/, "0&&(module.exports={handler});\n");
}

/** Files that are loaded with a file, itself included. */
export function reachable(path: string, outputs: Outputs, reached = new Set<string>()): ReadonlySet<string> {
  const output = outputs[path];
  if (output === undefined || reached.has(path)) return reached;
  reached.add(path);
  for (const { path: next, kind } of output.imports) if (kind === "import-statement") reachable(next, outputs, reached);
  return reached;
}

function sharedPart(file: string, part: string | undefined, outputs: Outputs): string {
  const names = outputs[`dist/${file}`]?.exports.join(",") ?? "";
  return `const {${names}}=require("./${INDEX}").${part};export {${names}}`;
}

async function bundle(contents: string, members: Members): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents },
    bundle: true,
    minify: true,
    platform: "node",
    target: "node24",
    format: "cjs",
    // Later imports are CommonJS too: Node's own import() would hide its default export.
    supported: { "dynamic-import": false },
    plugins: [inMemory(members)],
    logLevel: "warning",
    logOverride: { "ignored-bare-import": "silent" },
    write: false,
  });
  return outputFiles[0]?.text ?? "";
}

function inMemory({ codeOf, sideEffects }: Members): Plugin {
  return {
    name: "in-memory",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^\.\/.*[.]js$/ }, ({ path, kind }) => {
        const isMember = kind === "import-statement" && codeOf(basename(path)) !== undefined;
        return isMember ? { path: basename(path), namespace: "in-memory", sideEffects } : { path, external: true };
      });
      onLoad({ filter: /./, namespace: "in-memory" }, ({ path }) => ({ contents: codeOf(path) ?? "" }));
    },
  };
}
