/** Compares with the last deployment's parameters: a left-out parameter, or another cluster, is taken for a mistake. */
import { FOUND_OUT, lastGiven } from "../given-parameters.ts";
import type { Stack } from "./aws.ts";
import { DeployError } from "./objects.ts";
import { BY_HAND, type DeployOptions } from "./options.ts";

/** `parameters`: an empty one is the default, on purpose. @throws DeployError */
export function refuseForgotten(
  stack: Stack | undefined,
  { cluster, stage, parameters }: Pick<DeployOptions, "cluster" | "stage" | "parameters">,
): void {
  const last = lastGiven(stack);
  const served = last["eks-cluster"] ?? cluster;
  if (served !== cluster)
    throw new DeployError(
      `the functions of --stage ${stage} work for EKS cluster ${served}: give --cluster ${served}, or another --stage for ${cluster}.`,
    );
  const names = Object.keys(last).filter((name) => !parameters.has(name) && !FOUND_OUT.includes(name));
  const byHand = names.find((name) => BY_HAND.includes(name));
  if (byHand !== undefined)
    throw new DeployError(
      `the last deployment had --param ${byHand}=${last[byHand]}, which takes steps that deploy:all does not know: docs/deploy-by-hand.md.`,
    );
  if (names.length === 0) return;
  throw new DeployError(
    `the last deployment had ${names.map((name) => shown(name, last[name])).join(" ")}: give that again, or, to go back to the default, --param ${names[0]}= with nothing after it.`,
  );
}

/** The parameter as a shell takes it. */
function shown(name: string, value = ""): string {
  if (value === "…") return `--param ${name}=… (too long to be shown)`;
  const text = `${name}=${value}`;
  return `--param ${/^[\w=.,:/@%+-]*$/.test(text) ? text : `'${text}'`}`;
}
