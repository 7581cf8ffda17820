/** The base of the steps of a deployment. A step looks first, and then changes only what differs. */
import type { Screen } from "../../../functions/terminal/screen.ts";
import type { WebhookAddress } from "../../../shared/install/webhooks/address.ts";
import type { AwsSettings } from "../settings.ts";
import type { Aws, EksCluster, Stack } from "./aws.ts";
import type { DeployOptions } from "./options.ts";
import type { Kubectl } from "./programs.ts";

/** A problem that the operator has to fix: only its message is printed. */
export class DeployError extends Error {
  override readonly name = "DeployError";
}

export interface Tools {
  readonly options: DeployOptions;
  readonly aws: Aws;
  readonly kubectl: Kubectl;
  readonly screen: Screen;
  readonly now: () => number;
}

/** Found out before anything is begun. */
export interface Facts {
  readonly cluster: EksCluster;
  /** valid ones, the new one first; none: they are made */
  readonly secrets: readonly string[];
  readonly stack: Stack | undefined;
  readonly settings: AwsSettings;
}

export interface Deployment extends Tools, Facts {
  readonly stackName: string;
  readonly changes: Changes;
}

/** REGION/STACK, as its registrations have it. */
export function nameOfDeployment({ options, stackName }: Pick<Deployment, "options" | "stackName">): string {
  return `${options.region}/${stackName}`;
}

/** The webhooks' address, with the secret of its paths. */
export type SecretAddress = WebhookAddress & { readonly pathSecret: string };

/** Makes changes, or in a dry run prints them. */
export class Changes {
  readonly #screen: Screen;
  readonly #isDryRun: boolean;
  #count = 0;

  constructor(screen: Screen, isDryRun: boolean) {
    this.#screen = screen;
    this.#isDryRun = isDryRun;
  }

  get count(): number {
    return this.#count;
  }

  get isDryRun(): boolean {
    return this.#isDryRun;
  }

  /** undefined: in a dry run. `isChange`: judges the result */
  async make<T>(
    what: string,
    act: () => Promise<T>,
    isChange: (made: T) => boolean = () => true,
  ): Promise<T | undefined> {
    if (this.#isDryRun) {
      this.#count += 1;
      this.#screen.line("   ", { text: "would: ", color: "yellow" }, what);
      return undefined;
    }
    const made = await act();
    if (isChange(made)) this.#count += 1;
    return made;
  }

  said(text: string): void {
    this.#screen.line("   ", text);
  }
}

/** @throws DeployError where the stack has no such output */
export function outputOf({ stackName }: Deployment, stack: Stack, key: string): string {
  const value = stack.outputs.get(key);
  if (value) return value;
  throw new DeployError(
    `stack ${stackName} has no output ${key}: it was deployed by another release, or is not deployed to its end.`,
  );
}

interface StageSteps {
  /** rejects where the stage cannot be deployed; changes nothing */
  readonly look: (options: DeployOptions) => Promise<unknown>;
  readonly deploy: (options: DeployOptions) => Promise<unknown>;
}

/**
 * Deploys one stage after another. It begins only if all of them can be deployed, and stops at the first failure. A
 * repeated call continues there, because finished steps are left as they are.
 */
export async function throughStages(
  stages: readonly DeployOptions[],
  screen: Screen,
  steps: StageSteps,
): Promise<void> {
  const heading = (stage: string) => screen.line({ text: `Stage ${stage}`, color: "bold" });
  const names = stages.map(({ stage }) => stage);
  for (const [index, options] of stages.entries()) {
    heading(options.stage);
    await steps.look(options).catch((error: unknown) => {
      screen.warn(`Nothing was begun: stage ${names[index]} cannot be deployed.`);
      throw error;
    });
  }
  for (const [index, options] of stages.entries()) {
    heading(options.stage);
    await steps.deploy(options).catch((error: unknown) => {
      const [done, later] = [names.slice(0, index), names.slice(index + 1)];
      const sentences = [
        `Stopped at ${names[index]}; ${done.length} of ${names.length} stages done${done.length > 0 ? `: ${done.join(", ")}` : ""}.`,
        ...(later.length > 0 ? [`Left as they are: ${later.join(", ")}.`] : []),
        "When that is put right, the same command goes on from there.",
      ];
      screen.warn(sentences.join(" "));
      throw error;
    });
  }
}
