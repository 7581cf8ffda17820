/** An esbuild plugin: modules that few requests need are loaded when they are first called, not when a function starts. */
import { basename, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Plugin } from "esbuild";

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
    module: "shared/core/injection/share-volumes.ts",
    functions: ["mutate-pod"],
    needed: "sidecars that share mounts or devices",
  },
  {
    module: "shared/core/injection/transfer-env.ts",
    functions: ["mutate-pod"],
    needed: "sidecars with transferEnv",
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
