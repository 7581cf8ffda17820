/** Import directions: functions → {webhook, controller, kube, config, log} → core → api. Run by `npm run check:imports`. */
const only = (name, from, to, comment) => ({ name, severity: "error", comment, from, to });

export default {
  forbidden: [
    only("no-circular", {}, { circular: true }, "A cycle means two files are one."),
    only(
      "resolvable",
      {},
      { couldNotResolve: true },
      "Every import must resolve, else the rules below pass vacuously.",
    ),
    only("api-imports-nothing", { path: "^shared/api" }, { pathNot: "^shared/api" }, "The leaf."),
    only(
      "core-is-pure",
      { path: "^shared/core" },
      { pathNot: "^shared/(core|api)|^node_modules/re2js|^(node:)?crypto$" },
      "No I/O in core.",
    ),
    only("core-lib-is-low", { path: "^shared/core/lib" }, { path: "^shared/core/(?!lib)" }, "lib knows no decision."),
    only(
      "core-middle",
      { path: "^shared/core/(hash|match|defaults)" },
      { path: "^shared/core/(inject|upgrade|revision|status|validate|[^/]+[.]ts)" },
      "hash, match, defaults sit below.",
    ),
    only(
      "core-stories-on-top",
      { path: "^shared/core/[^/]+/" },
      { path: "^shared/core/[^/]+[.]ts" },
      "Only the shell calls the stories.",
    ),
    only(
      "library-is-pure",
      { path: "^functions/library" },
      { pathNot: "^functions/library|^shared/(core|api)|^shared/webhook/response[.]ts$" },
      "The library does no I/O.",
    ),
    only("shell-below-functions", { path: "^shared" }, { path: "^(functions|infra|test)" }, "shared never looks up."),
    only(
      "client-node-in-kube",
      { path: "^(functions|infra|shared)", pathNot: "^shared/kube" },
      { path: "client-node" },
      "One Kubernetes client.",
    ),
    only(
      "webhook-is-bare",
      { path: "^shared/webhook" },
      { path: "^node_modules/" },
      "Every package is paid for at each cold start.",
    ),
    only(
      "hono-for-pages",
      { path: "^(shared|infra|functions)", pathNot: "^functions/(pages|ui|serve-metrics)" },
      { path: "^node_modules/hono" },
      "Reviews do not pay for a router.",
    ),
    only("lambda-in-functions", { path: "^(shared|infra)" }, { path: "aws-lambda" }, "Only functions knows Lambda."),
    only(
      "webhook-not-controller",
      { path: "^shared/webhook" },
      { path: "^shared/controller" },
      "Two shells, side by side.",
    ),
    only(
      "controller-not-webhook",
      { path: "^shared/controller" },
      { path: "^shared/webhook" },
      "Two shells, side by side.",
    ),
    only(
      "kube-is-low",
      { path: "^shared/kube" },
      { path: "^shared/(webhook|controller|core)" },
      "The client decides nothing.",
    ),
    only(
      "no-dev-in-shipped",
      { path: "^(functions|shared)", pathNot: "^functions/(cli|demo)" },
      { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
      "Shipped code runs without devDependencies.",
    ),
    {
      name: "mutate-sidecarset-has-no-client",
      severity: "error",
      comment: "It decides from the review alone, so it starts in milliseconds.",
      from: { path: "^functions/(mutate-sidecarset|convert-sidecarset)[.]ts$" },
      to: { path: "^shared/kube/(client|connect)|client-node", reachable: true },
    },
  ],
  options: {
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
    },
  },
};
