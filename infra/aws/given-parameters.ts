/** The parameters of a deployment, as an output of its stack, so that the next one sees forgotten parameters. */
import { ConfigError } from "../../shared/settings/config-error.ts";

/** Parameters that every `deploy:all` finds out itself. */
export const FOUND_OUT = ["eks-cluster", "cluster-server", "cluster-ca", "path-digests", "registered-failure-policy"];
const NOT_KEPT = ["cluster-server", "cluster-ca", "path-digests"];

export interface Given {
  /** every parameter with a value, also if only serverless.yml reads it */
  readonly given: ReadonlyMap<string, string>;
}

/** Parameters that serverless.yml reads, or that only later deployments need. */
const READ_ELSEWHERE = ["namespace", "feature-gates", "log-level", "tags", "registered-failure-policy"];

const OUTPUT = "Parameters";
const MOST_CHARACTERS = 200;

/** `given`: the parameters with a value among the ones that were read. */
export async function noting(ask: ReadParameter): Promise<Given & { readonly read: ReadParameter }> {
  const given = new Map<string, string>();
  const read = async (name: string) => {
    const text = await ask(name);
    if (text !== "") given.set(name, text);
    return text;
  };
  for (const name of READ_ELSEWHERE) await read(name);
  return { read, given };
}

export function parametersOutput({ given }: Given): {
  readonly [OUTPUT]: { readonly Description: string; readonly Value: string };
} {
  const values = Object.fromEntries(keptOf(given));
  return { [OUTPUT]: { Description: "what it was deployed with", Value: JSON.stringify(values) } };
}

function keptOf(given: Given["given"]): readonly (readonly [string, string])[] {
  const kept = [...given].filter(([name]) => !NOT_KEPT.includes(name)).toSorted();
  return kept.map(([name, text]) => [name, text.length > MOST_CHARACTERS ? "…" : text] as const);
}

type Outputs = { readonly outputs: ReadonlyMap<string, string> };

/** The parameters of the stack: parameter → value. */
export function lastGiven(stack: Outputs | undefined): Readonly<Record<string, string>> {
  return JSON.parse(stack?.outputs.get(OUTPUT) || "{}") as Readonly<Record<string, string>>;
}

/** False: it is of a release that did not say so. */
export function hasGiven({ outputs }: Outputs): boolean {
  return outputs.has(OUTPUT);
}

/** The parameters that differ from the last deployment's, a line each. */
export function changesOfGiven(stack: Outputs | undefined, { given }: Given): readonly string[] {
  const [before, after] = [lastGiven(stack), new Map(keptOf(given))];
  const names = [...new Set([...Object.keys(before), ...after.keys()])].toSorted();
  const shown = (text: string | undefined) => text ?? "(default)";
  const changed = names.filter((name) => before[name] !== after.get(name));
  return changed.map((name) => `${name}: ${shown(before[name])} → ${shown(after.get(name))}`);
}

// Parameters of the deployment, read by kind.

/** One parameter's text; empty when it is not given. */
export type ReadParameter = (name: string) => Promise<string>;

/** @throws ConfigError */
export async function readFlag(name: string, read: ReadParameter, otherwise = false): Promise<boolean> {
  const text = await read(name);
  if (text === "") return otherwise;
  if (text === "false" || text === "true") return text === "true";
  throw new ConfigError(`--param ${name}=${text} is neither true nor false.`);
}

/** Ids of the VPC, with commas between them. `kind`: their prefix. @throws ConfigError */
export async function readIds(name: string, kind: "subnet" | "sg", read: ReadParameter): Promise<readonly string[]> {
  const ids = (await read(name)).split(",").flatMap((entry) => entry.trim() || []);
  const odd = ids.find((id) => !id.startsWith(`${kind}-`));
  if (odd === undefined) return ids;
  throw new ConfigError(`--param ${name}: ${odd} is no id: write ${kind}-…, with commas between them.`);
}

/** Refuses repeated names, of which only the last would count. @throws ConfigError */
export function refuseRepeated(names: readonly string[]): void {
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice === undefined) return;
  throw new ConfigError(
    `--param ${twice} is given more than once: write it once; lists have commas between their values.`,
  );
}
