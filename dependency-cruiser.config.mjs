import { readFileSync } from "node:fs";

/** Import directions: functions → {webhook, controller, kube, settings} → core → go → api, and within a layer from the rooms above to those below. Run by `npm run check:imports`. */
const only = (name, from, to, comment) => ({ name, severity: "error", comment, from, to });

/** Rooms of a layer, from the lowest: none imports one that comes after it. */
const ROOMS = {
  "shared/core": [
    "admission",
    "pod",
    "sidecarset",
    "launch-priority",
    "container-recreate",
    "sidecar-terminator",
    "injection",
    "rollout",
    "inspect",
    "statefulset",
  ],
  "shared/controller": [
    "loop",
    "pod-store",
    "rollout",
    "container-recreate",
    "launch-priority",
    "sidecar-terminator",
    "statefulset",
  ],
  "shared/webhook": ["server", "view", "review", "handlers"],
};
/** The exports of the embedded cluster's package, as paths of the repository. */
const EXPORTED = Object.values(JSON.parse(readFileSync("infra/local/package.json", "utf8")).exports)
  .map((path) => path.slice("./".length).replaceAll(".", "[.]").replace("*", "[^/]+"))
  .join("|");

/** Top rooms of shared, from the lowest. */
const TOP = [
  "api/",
  "go/",
  "core/",
  "(log|cluster-log|time-text|doings)[.]ts$",
  "aws/",
  "settings/",
  "kube/",
  "approval/",
  "(controller|webhook)/",
  "metrics/",
  "tracing/",
  "install/",
];
const topRules = TOP.slice(0, -1).map((room, index) =>
  only(
    `top-${index}-is-below`,
    { path: `^shared/${room}` },
    { path: `^shared/(${TOP.slice(index + 1).join("|")})` },
    "A top room knows only those below it.",
  ),
);

const roomRules = Object.entries(ROOMS).flatMap(([layer, rooms]) =>
  rooms
    .slice(0, -1)
    .map((room, index) =>
      only(
        `${layer.replace("shared/", "")}-${room}-is-below`,
        { path: `^${layer}/${room}/` },
        { path: `^${layer}/(${rooms.slice(index + 1).join("|")})/` },
        "A room knows only those below it.",
      ),
    ),
);

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
      "go-is-low",
      { path: "^shared/go" },
      { pathNot: "^shared/(go|api)|^node_modules/re2js|^(node:)?crypto$" },
      "Go's laws, nothing of ours.",
    ),
    only(
      "core-is-pure",
      { path: "^shared/core" },
      { pathNot: "^shared/(core|go|api)|^node_modules/re2js|^(node:)?crypto$" },
      "No I/O in core.",
    ),
    only(
      "core-top-is-leaf",
      { path: "^shared/core/[^/]+[.]ts$" },
      { path: "^shared/core/[^/]+/" },
      "What every room speaks of: actions and the ledger.",
    ),
    only(
      "controller-rooms-below-passes",
      { path: "^shared/controller/[^/]+/" },
      { path: "^shared/controller/[^/]+[.]ts$" },
      "Only functions call the passes.",
    ),
    ...topRules,
    ...roomRules,
    only(
      "local-is-a-package",
      { path: "^infra/local/" },
      { pathNot: "^infra/local/|^node_modules/", dependencyTypesNot: ["core"] },
      "The embedded cluster knows nothing of ours, so it shares none of our mistakes.",
    ),
    only(
      "local-by-its-exports",
      { pathNot: "^infra/local/" },
      { path: "^infra/local/", pathNot: `^infra/local/(${EXPORTED})$` },
      "What infra/local/package.json does not export is its own business.",
    ),
    only(
      "local-for-demo-and-tests",
      { path: "^(shared|functions|infra)/", pathNot: "^infra/(local|demo)/" },
      { path: "^infra/local/" },
      "Only the demo starts a cluster.",
    ),
    {
      name: "local-is-not-deployed",
      severity: "error",
      comment: "No bundle of a function, nor the library, holds the embedded cluster.",
      from: { path: "^functions/(lambda|library|server)/|^shared/" },
      to: { path: "^infra/local/cluster[.]ts$", reachable: true },
    },
    only(
      "library-is-pure",
      { path: "^functions/library" },
      {
        pathNot:
          "^functions/library|^shared/(core|go|api)|^shared/webhook/review/response[.]ts$|^shared/webhook/server/paths[.]ts$|^shared/install/(crd|webhooks/address)",
      },
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
      { path: "^(shared|infra|functions)", pathNot: "^functions/server/(pages|ui|metrics)" },
      { path: "^node_modules/hono" },
      "Reviews do not pay for a router.",
    ),
    only(
      "agents-apart",
      { path: "^(shared|infra|functions)", pathNot: "^functions/cli/commands/mcp[.]ts$" },
      { path: "^node_modules/@modelcontextprotocol/" },
      "Nothing but the command for agents loads their protocol.",
    ),
    only(
      "traces-apart",
      { path: "^(shared|infra|functions)", pathNot: "^shared/tracing/" },
      { path: "^node_modules/@opentelemetry/|^shared/tracing/(?!tracing[.]ts$)" },
      "Nothing knows of spans but what makes them.",
    ),
    only(
      "traces-only-where-wanted",
      { path: "^(shared|functions)", pathNot: "^shared/tracing/" },
      { path: "^shared/tracing/", dependencyTypesNot: ["dynamic-import", "type-only"] },
      "Who wants no traces loads nothing of them.",
    ),
    only(
      "cli-is-the-top",
      { pathNot: "^functions/cli(/|[.])|^test/" },
      { path: "^functions/cli/" },
      "What others need of the command line stands in functions/terminal.",
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
      { path: "^shared/(webhook|controller|core|go)" },
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
      from: { path: "^functions/lambda/(mutate-sidecarset|convert-sidecarset)[.]ts$" },
      to: { path: "^shared/kube/(client|connect)|client-node", reachable: true },
    },
  ],
  options: {
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    // A package of its own, whose packages are there only once it was built.
    exclude: { path: "^infra/site" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["import", "require", "node", "default", "types"],
    },
  },
};
