/** The tests' own arguments of the command line, without vitest's. */

export interface Arguments {
  readonly kubeconfig: string | undefined;
  readonly consent: string | undefined;
  readonly webhookHost: string | undefined;
  /** version of Kubernetes, such as 1.33; undefined: the one that all tests run on */
  readonly kubernetes: string | undefined;
  /** version of the real node's kubelet; undefined: the control plane's */
  readonly kubelet: string | undefined;
  readonly isSoak: boolean;
  /** true if pods run on a real node of this machine */
  readonly isOnNode: boolean;
  /** arguments of vitest: names of files, -t NAME and other options */
  readonly others: readonly string[];
}

/** A mistake on the command line, in one sentence. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

const OF_GIVEN = ["--kubeconfig", "--consent", "--webhook-host"] as const;
const KUBERNETES = "--kubernetes";
const KUBELET = "--kubelet";
const WITH_VALUE: ReadonlySet<string> = new Set([...OF_GIVEN, KUBERNETES, KUBELET]);
const SOAK = "--soak";
const NODE = "--node";

/** @throws UsageError */
function separate(args: readonly string[]) {
  const values = new Map<string, string>();
  const others: string[] = [];
  const left = [...args];
  for (let next = left.shift(); next !== undefined; next = left.shift()) {
    const [name = "", inline] = next.split(/=(.*)/s);
    if (!WITH_VALUE.has(name)) {
      others.push(next);
      continue;
    }
    const value = inline ?? left.shift();
    if (!value) throw new UsageError(`${name}: its value is missing`);
    values.set(name, value);
  }
  return { values, others };
}

/** @throws UsageError */
export function parseArguments(args: readonly string[]): Arguments {
  const { values, others } = separate(args);
  const [kubeconfig, ...dependent] = OF_GIVEN.map((name) => values.get(name));
  if (kubeconfig === undefined && dependent.some((value) => value !== undefined))
    throw new UsageError("--consent and --webhook-host are about the cluster of --kubeconfig, which is missing");
  const [consent, webhookHost] = dependent;
  const isSoak = others.includes(SOAK);
  const isOnNode = others.includes(NODE);
  const kubernetes = values.get(KUBERNETES);
  const own = [isOnNode && NODE, kubernetes !== undefined && KUBERNETES].find(Boolean);
  if (own && kubeconfig !== undefined)
    throw new UsageError(`${own} starts a cluster of its own, so it does not go with --kubeconfig`);
  const kubelet = values.get(KUBELET);
  if (kubelet !== undefined && !isOnNode)
    throw new UsageError("--kubelet is about the node of --node, which is missing");
  const rest = others.filter((one) => ![SOAK, NODE].includes(one));
  return { kubeconfig, consent, webhookHost, kubernetes, kubelet, isSoak, isOnNode, others: rest };
}
