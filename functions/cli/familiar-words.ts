/** Points people who know kubectl and other tools from the words they know to the commands that do it. */

const EDIT =
  "write the manifest with `kubectl apply -f FILE`; `diff -f FILE` and `plan -f FILE` say first what it does";
const RECREATE =
  "`explain NAME` says which pods need to be recreated, and the command that recreates them; a container alone: `kubectl delete pod`, or set image";

/** The answer to each first word. Texts in backticks are commands of this program, or of kubectl. */
const FAMILIAR: Readonly<Record<string, string>> = {
  apply: EDIT,
  cancel: "use `abort NAME`",
  config: "choose a context with --context, and a kubeconfig with --kubeconfig",
  context: "choose a context with --context",
  continue: "use `resume NAME`, or `promote NAME` for the next wave",
  create: EDIT,
  delete: "use `kubectl delete sidecarset NAME`; running pods keep their sidecars",
  describe: "use `explain NAME`, or `explain pod/NAME`",
  diagnose: "use `check` for the installation, `explain NAME` for a SidecarSet",
  doctor: "use `check`",
  "dry-run": "use `plan NAME`",
  edit: EDIT,
  events: "use `explain NAME`, or `kubectl describe sidecarset NAME`",
  freeze: "use `pause NAME`",
  get: "use `status` for all SidecarSets, `pods NAME` for the pods of one",
  halt: "use `pause NAME`",
  health: "use `check`",
  image: "use `set image NAME CONTAINER=IMAGE`",
  inject: "use `preview -f FILE` for what a pod would get; pods get their sidecars when they are created",
  list: "use `status` for all SidecarSets, `pods NAME` for the pods of one",
  log: "use `kubectl logs POD -c CONTAINER`",
  logs: "use `kubectl logs POD -c CONTAINER`",
  ls: "use `status` for all SidecarSets, `pods NAME` for the pods of one",
  next: "use `promote NAME`",
  patch: EDIT,
  recreate: RECREATE,
  remove: "use `kubectl delete sidecarset NAME`; running pods keep their sidecars",
  render: "use `preview -f FILE`",
  replace: EDIT,
  restart: RECREATE,
  revert: "use `undo NAME`",
  rm: "use `kubectl delete sidecarset NAME`; running pods keep their sidecars",
  rollback: "use `undo NAME`",
  scale: "use `set max-unavailable NAME`, or `set partition NAME`, for how fast a rollout goes",
  show: "use `status NAME`, or `explain NAME`",
  sidecarset: "leave the kind out: `status NAME`",
  sidecarsets: "use `status`",
  simulate: "use `plan NAME`",
  start: "use `resume NAME`",
  stop: "use `pause NAME`, or `abort NAME` to go back",
  template: "use `preview -f FILE`",
  test: "use `lint FILE` for files, `check` for an installation",
  unpause: "use `resume NAME`",
  update: "use `set image NAME CONTAINER=IMAGE`",
  upgrade: "use `set image NAME CONTAINER=IMAGE`; of this program and its functions: docs/upgrade.md",
  validate: "use `lint FILE`",
  verify: "use `lint FILE` for files, `check` for an installation",
  wait: "use `status NAME -w`",
  watch: "use `status NAME -w`",
  why: "use `explain NAME`, or `explain pod/NAME`",
};

const ROLLOUT: ReadonlySet<string> = new Set(["status", "history", "pause", "resume", "undo"]);

/** What to use in place of the words; undefined: they mean nothing to us. */
export function familiarWords([first = "", second = ""]: readonly string[]): string | undefined {
  const word = first.toLowerCase();
  if (word === "rollout") {
    if (second === "restart") return RECREATE;
    return `leave the word out: \`${ROLLOUT.has(second) ? second : "status"} NAME\``;
  }
  if (/^[a-z.]+\/[^/]+(\/[^/]+)?$/.test(word)) return `say what to do with it, for example \`explain ${word}\``;
  if (/^[a-z][a-z0-9]*(-[a-z0-9]+)+$/.test(word) && /\d/.test(word))
    return `of a pod of that name: \`explain pod/${word}\``;
  return Object.hasOwn(FAMILIAR, word) ? FAMILIAR[word] : undefined;
}
