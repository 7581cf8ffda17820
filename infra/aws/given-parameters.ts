/** What a deployment was given, as an output of its stack: so that the next one can tell what was forgotten. */
import type { ReadParameter } from "./read-parameter.ts";

/** What `deploy:all` finds out itself, each time. */
export const FOUND_OUT = ["eks-cluster", "cluster-server", "cluster-ca", "path-digests"];

export interface Given {
  /** every parameter that has a value, also those that serverless.yml reads itself */
  readonly given: ReadonlyMap<string, string>;
}

/** What serverless.yml reads itself. */
const READ_ELSEWHERE = ["namespace", "feature-gates", "log-level", "tags"];

const OUTPUT = "Parameters";
const MOST_CHARACTERS = 200;

/** `given`: what has a value, of what was read by then. */
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
  const kept = [...given].filter(([name]) => !FOUND_OUT.includes(name)).toSorted();
  const values = kept.map(([name, text]) => [name, text.length > MOST_CHARACTERS ? "…" : text] as const);
  return { [OUTPUT]: { Description: "what it was deployed with", Value: JSON.stringify(Object.fromEntries(values)) } };
}

/** Of a stack's outputs: parameter → value. */
export function lastGiven(outputs: ReadonlyMap<string, string>): Readonly<Record<string, string>> {
  return JSON.parse(outputs.get(OUTPUT) || "{}") as Readonly<Record<string, string>>;
}
