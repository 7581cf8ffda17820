/** An esbuild plugin: modules that few requests need are loaded when they are first called, not when a function starts. */
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Metafile, type OutputFile, type Plugin } from "esbuild";

interface Deferred {
  readonly module: string;
  /** in functions/ */
  readonly functions: readonly string[];
  /** the requests that load it */
  readonly needed: string;
}

/** Modules that export only functions, which stay synchronous. */
const DEFERRED: readonly Deferred[] = [
  {
    module: "functions/lambda/load-balancer.ts",
    functions: ["mutate-pod", "mutate-sidecarset", "convert-sidecarset", "validate-sidecarset"],
    needed: "callers by a load balancer",
  },
  {
    module: "shared/settings/parse-feature-gates.ts",
    functions: ["mutate-pod", "validate-sidecarset"],
    needed: "functions whose FEATURE_GATES is set",
  },
  {
    module: "shared/go/regular-expression.ts",
    functions: ["mutate-pod", "validate-sidecarset"],
    needed: "SidecarSets with a regular expression",
  },
  {
    module: "shared/core/injection/resources-policy.ts",
    functions: ["mutate-pod"],
    needed: "pods whose sidecar has a resourcesPolicy",
  },
  {
    module: "shared/core/sidecarset/revision/choose-revision.ts",
    functions: ["mutate-pod"],
    needed: "pods that get a revision other than the newest",
  },
  {
    module: "shared/core/injection/decode-pod.ts",
    functions: ["mutate-pod"],
    needed: "pods with unusual quantities, and what is no pod",
  },
  {
    module: "shared/go/types/decode-go.ts",
    functions: ["mutate-pod"],
    needed: "pods with unusual quantities, what is no pod, and revisions",
  },
  {
    module: "shared/core/injection/reset-fields.ts",
    functions: ["mutate-pod"],
    needed: "new pods that claim to have ended, or to be deleted",
  },
  {
    module: "shared/core/injection/hot-upgrade.ts",
    functions: ["mutate-pod"],
    needed: "sidecars that are upgraded hot",
  },
  {
    module: "shared/go/rfc3339.ts",
    functions: ["mutate-pod"],
    needed: "pods that are created with the annotations of an injection",
  },
  {
    module: "shared/go/json/json-problem.ts",
    functions: ["mutate-pod"],
    needed: "pods that are created with the annotations of an injection",
  },
  { module: "shared/go/field-error.ts", functions: ["mutate-pod"], needed: "pods that are refused" },
  {
    module: "shared/core/launch-priority/barriers.ts",
    functions: ["mutate-pod"],
    needed: "pods whose containers start in an order",
  },
  {
    module: "shared/core/injection/share-with-app.ts",
    functions: ["mutate-pod"],
    needed: "sidecars that share mounts or devices, or have transferEnv",
  },
  {
    module: "shared/go/label-name.ts",
    functions: ["mutate-pod"],
    needed: "transferred env variables that read a label or an annotation",
  },
  {
    module: "shared/core/pod/patch-pod-metadata.ts",
    functions: ["mutate-pod"],
    needed: "SidecarSets with patchPodMetadata",
  },
  {
    module: "shared/core/injection/values-that-fit.ts",
    functions: ["mutate-pod"],
    needed: "SidecarSets whose values change in place",
  },
  {
    module: "shared/core/pod/values-in-place.ts",
    functions: ["mutate-pod", "mutate-sidecarset", "validate-sidecarset"],
    needed: "SidecarSets whose values change in place",
  },
  {
    module: "shared/webhook/view/revision-lookup.ts",
    functions: ["mutate-pod"],
    needed: "SidecarSets with injectionStrategy.revision",
  },
  {
    module: "shared/webhook/review/align.ts",
    functions: ["mutate-pod"],
    needed: "pods that are given containers in more than one place",
  },
  {
    module: "shared/webhook/handlers/pods-ready.ts",
    functions: ["mutate-pod"],
    needed: "who asks whether it is ready",
  },
  {
    module: "shared/webhook/review/readiness.ts",
    functions: ["mutate-pod", "validate-sidecarset"],
    needed: "who asks whether it is ready",
  },
  {
    module: "shared/webhook/review/refusals.ts",
    functions: ["mutate-pod"],
    needed: "callers who have not proved who they are",
  },
  {
    module: "shared/webhook/view/trouble.ts",
    functions: ["mutate-pod"],
    needed: "API servers that do not answer in time, and SidecarSets that are listed",
  },
  {
    module: "shared/webhook/server/client-certificate.ts",
    functions: ["mutate-pod", "validate-sidecarset"],
    needed: "mutual TLS",
  },
  {
    module: "shared/kube/failure.ts",
    functions: ["mutate-pod", "validate-sidecarset"],
    needed: "calls to the API server that fail",
  },
  { module: "shared/kube/write-calls.ts", functions: ["mutate-pod"], needed: "nobody, because it only reads" },
  {
    module: "shared/kube/write-shares.ts",
    functions: ["mutate-pod", "validate-sidecarset"],
    needed: "functions that write",
  },
  {
    module: "shared/kube/read-list.ts",
    functions: ["mutate-pod", "validate-sidecarset"],
    needed: "passes, which keep little of a long list",
  },
  {
    module: "shared/core/statefulset/validate.ts",
    functions: ["validate-sidecarset"],
    needed: "ordered sets",
  },
  {
    module: "shared/webhook/review/admission-warnings.ts",
    functions: ["mutate-pod"],
    needed: "pods that get sidecars",
  },
  {
    module: "shared/core/container-recreate/admit.ts",
    functions: ["validate-sidecarset"],
    needed: "ContainerRecreateRequests",
  },
  {
    module: "shared/core/sidecarset/validate/newer-fields.ts",
    functions: ["validate-sidecarset"],
    needed: "SidecarSets that are created or changed",
  },
  {
    module: "shared/kube/watch.ts",
    functions: ["mutate-pod", "validate-sidecarset"],
    needed: "clusters with more than 500 SidecarSets",
  },
  {
    module: "shared/core/rollout/rules/pre-pull/pull-guard.ts",
    functions: ["rollout", "dry-run"],
    needed: "SidecarSets whose images are pulled before pods are updated",
  },
  {
    module: "shared/core/rollout/rules/restarts/restarts.ts",
    functions: ["rollout", "dry-run"],
    needed: "SidecarSets whose workloads are restarted",
  },
  {
    module: "shared/controller/rollout/keep-registration.ts",
    functions: ["rollout", "dry-run"],
    needed: "functions with KEEP_REGISTRATION",
  },
  {
    module: "shared/controller/rollout/put-back.ts",
    functions: ["rollout", "dry-run"],
    needed: "clusters with drained pods",
  },
  {
    module: "shared/controller/sidecar-terminator/terminate-sidecars.ts",
    functions: ["rollout", "dry-run"],
    needed: "clusters with the feature gate SidecarTerminator",
  },
];

const NAMESPACE = "deferred";

export interface DeferredModules {
  readonly plugin: Plugin;
  /** absolute paths of the deferred modules that the build has met */
  readonly met: ReadonlySet<string>;
}

/** The name of a deferred module's file in a bundle, without its extension. */
export function deferredName(path: string): string {
  return basename(path, ".ts");
}

/**
 * The plugin for a function in functions/. Its deferred modules become functions that load a file of the bundle, and
 * call the same function there.
 */
export function deferredModules(functionName: string): DeferredModules {
  const ofFunction = DEFERRED.filter(({ functions }) => functions.includes(functionName));
  const deferred = new Set(ofFunction.map(({ module }) => resolve(module)));
  const met = new Set<string>();
  const plugin: Plugin = {
    name: NAMESPACE,
    setup(build) {
      build.onResolve({ filter: /^\.{1,2}\/.*[.]ts$/ }, ({ path, resolveDir, kind }) => {
        const module = resolve(resolveDir, path);
        if (kind !== "import-statement" || !deferred.has(module)) return undefined;
        met.add(module);
        return { path: module, namespace: NAMESPACE, sideEffects: false };
      });
      build.onResolve({ filter: /^\.\/[a-z\d-]+[.]js$/, namespace: NAMESPACE }, ({ path }) => ({
        path,
        external: true,
      }));
      build.onLoad({ filter: /./, namespace: NAMESPACE }, async ({ path }) => ({ contents: await standIn(path) }));
    },
  };
  return { plugin, met };
}

async function standIn(path: string): Promise<string> {
  const module = (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  const names = Object.keys(module);
  const other = names.find((name) => typeof module[name] !== "function");
  if (names.length === 0 || other !== undefined)
    throw new Error(`${path} cannot be deferred: ${other ?? "nothing"} is no function`);
  return [
    `const load = () => require("./${deferredName(path)}.js");`,
    ...names.map((name) => `export const ${name} = (...args) => load().${name}(...args);`),
  ].join("\n");
}

// Turns a bundle of split ES modules into CommonJS: one file of all that is loaded at once, and one for each that
// waits. Only ES modules can be split, and only CommonJS can be loaded in the midst of a call: Lambda's Node does not
// require ES modules.

interface SplitBundle {
  readonly outputFiles: readonly OutputFile[];
  readonly metafile: Metafile;
}

interface CommonJsBundle {
  /** of index.js */
  readonly eager: string;
  /** file name → code */
  readonly lazy: ReadonlyMap<string, string>;
}

type Outputs = Metafile["outputs"];
interface Members {
  /** the code of a file in the bundle; undefined: it stays a file of its own */
  readonly codeOf: (file: string) => string | undefined;
  /** false: they have run already, and unused ones are left out */
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
