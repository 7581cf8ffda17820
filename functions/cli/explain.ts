/** `explain`: an ordered trace of every rule, for a pod or a SidecarSet. */
import type { Pod } from "../../shared/api/kubernetes.ts";
import type { SidecarSet } from "../../shared/api/sidecarset.ts";
import type { Step, Verdict } from "../../shared/core/explain/step.ts";
import { explainPod, explainSidecarSet } from "../../shared/core/explain.ts";
import { isInjected } from "../../shared/core/pod/is-matched.ts";
import { isKubeError } from "../../shared/kube/error.ts";
import { type Cluster, PODS } from "../../shared/kube/port.ts";
import { CliError } from "../cli-error.ts";
import type { Command } from "./command.ts";
import { listSets, readFacts, readNamespace, readRegistrations } from "./read-set.ts";
import type { Color, Screen } from "./screen.ts";
import type { Session } from "./session.ts";
import { wrap } from "./table.ts";

export const EXPLAIN: Command = {
  name: "explain",
  group: "During a rollout",
  summary: "why a pod has its sidecars or not, why it is updated or not, and what it waits for",
  details:
    "Every rule in the order in which it is looked at, with its verdict: ✓ nothing in the way, · good to know, … goes on by itself, ✗ goes on only when somebody does something. Of a pod, every SidecarSet is told that is meant for it or has been; with --all the others too.",
  arguments: [
    { name: "<KIND/NAME>", about: "pod/NAME (-n), pod/NAMESPACE/NAME or sidecarset/NAME", completion: "sidecarset" },
  ],
  options: [
    { flags: "--sidecarset <NAME>", about: "of a pod: only this SidecarSet" },
    { flags: "--all", about: "of a pod: also SidecarSets whose selector does not match it" },
  ],
  outputs: ["table", "json", "yaml"],
  examples: ["sidecarset explain pod/shop/web-0", "sidecarset explain sidecarset/log-agent"],
  run: async (input, session) => {
    const target = targetOf(input.argument(0));
    const cluster = await session.cluster();
    if (target.kind === "sidecarset") await tellSet(session, cluster, target.name);
    else {
      const { name, namespace = await session.namespace() } = target;
      await tellPod(session, cluster, { namespace, name, isAll: input.isSet("all"), only: input.text("sidecarset") });
    }
    return 0;
  },
};

interface Target {
  readonly kind: "pod" | "sidecarset";
  readonly name: string;
  readonly namespace?: string;
}

function targetOf(text: string): Target {
  const [kind = "", ...rest] = text.split("/");
  const [first = "", second] = rest;
  if (["pod", "pods", "po"].includes(kind) && first && rest.length <= 2)
    return { kind: "pod", name: second ?? first, ...(second === undefined ? {} : { namespace: first }) };
  if (["sidecarset", "sidecarsets"].includes(kind) && first && rest.length === 1)
    return { kind: "sidecarset", name: first };
  throw new CliError(`${text}: write pod/NAME, pod/NAMESPACE/NAME or sidecarset/NAME`);
}

interface Wanted {
  readonly namespace: string;
  readonly name: string;
  readonly only: string | undefined;
  readonly isAll: boolean;
}

interface Trace {
  readonly sidecarSet: string;
  readonly steps: readonly Step[];
}

async function tellPod(session: Session, cluster: Cluster, wanted: Wanted): Promise<void> {
  const { namespace, name, only, isAll } = wanted;
  const pod = await readPod(cluster, wanted);
  const [all, namespaceObject, registrations] = await Promise.all([
    listSets(cluster),
    readNamespace(cluster, namespace),
    readRegistrations(cluster),
  ]);
  if (only !== undefined && !all.some(({ metadata }) => metadata?.name === only))
    throw new CliError(`there is no SidecarSet ${only}; sidecarset status lists those that there are`);
  const traces: Trace[] = [];
  for (const { metadata } of all.filter(({ metadata }) => only === undefined || metadata?.name === only)) {
    const { sidecarSet, facts } = await readFacts(session, cluster, metadata?.name ?? "");
    const steps = explainPod(pod, sidecarSet, {
      ...facts,
      namespace: namespaceObject,
      registrations,
      sidecarSets: all,
    });
    traces.push({ sidecarSet: metadata?.name ?? "", steps });
  }
  const isMeant = (trace: Trace) => only !== undefined || isAll || isRelated(pod, trace);
  const shown = traces.filter(isMeant);
  session.print({ pod: { namespace, name }, sidecarSets: shown }, (screen) => {
    for (const { sidecarSet, steps } of shown)
      showSteps(`pod ${namespace}/${name}, SidecarSet ${sidecarSet}`, steps, screen);
    const left = traces.length - shown.length;
    if (traces.length === 0) screen.line("The cluster has no SidecarSets.");
    else if (left > 0)
      screen.line({ text: `${left} other SidecarSets are not meant for the pod; --all tells why.`, color: "dim" });
  });
}

function isRelated(pod: Pod, { sidecarSet, steps }: Trace): boolean {
  if (isInjected(pod, sidecarSet)) return true;
  return !steps.some(
    ({ reason, verdict }) => verdict === "stop" && ["SelectorNotMatched", "NamespaceNotSelected"].includes(reason),
  );
}

async function readPod(cluster: Cluster, { namespace, name }: Wanted): Promise<Pod> {
  try {
    return await cluster.get<Pod>(PODS, { namespace, name });
  } catch (error) {
    if (!isKubeError(error, 404)) throw error;
    throw new CliError(
      `there is no pod ${name} in the namespace ${namespace}; choose another with -n, or write pod/NAMESPACE/NAME`,
    );
  }
}

async function tellSet(session: Session, cluster: Cluster, name: string): Promise<void> {
  const { sidecarSet, facts } = await readFacts(session, cluster, name);
  const sidecarSets: readonly SidecarSet[] = await listSets(cluster);
  const steps = explainSidecarSet(sidecarSet, { ...facts, sidecarSets });
  session.print({ sidecarSet: name, steps }, (screen) => showSteps(`SidecarSet ${name}`, steps, screen));
}

const MARKS: Readonly<Record<Verdict, readonly [string, Color]>> = {
  ok: ["✓", "green"],
  note: ["·", "dim"],
  wait: ["…", "yellow"],
  stop: ["✗", "red"],
};

function showSteps(title: string, steps: readonly Step[], screen: Screen): void {
  screen.line({ text: title, color: "bold" });
  for (const { verdict, reason, message, hint } of steps) {
    const [mark, color] = MARKS[verdict];
    const [first = "", ...rest] = wrap(`${reason}: ${message}`, screen.width, 4);
    screen.line("  ", { text: mark, color }, ` ${first}`);
    for (const line of rest) screen.line(line);
    if (hint === undefined) continue;
    const [firstHint = "", ...restHint] = wrap(`→ ${hint}`, screen.width, 4);
    for (const line of [`    ${firstHint}`, ...restHint]) screen.line({ text: line, color: "cyan" });
  }
}
