/** `compile`: a policy that injects a SidecarSet while no webhook answers, as YAML. */
import type { ControllerRevision, KubernetesObject } from "../../../shared/api/kubernetes.ts";
import { SIDECARSET_NAME_LABEL } from "../../../shared/api/names.ts";
import type { SidecarSet } from "../../../shared/api/sidecarset.ts";
import { isMutatingPolicyServed } from "../../../shared/controller/rollout/kubelets.ts";
import { listAll } from "../../../shared/controller/rollout/observe-pods.ts";
import { compileSidecarSet } from "../../../shared/core/injection/compile/compile.ts";
import type { NotExpressible } from "../../../shared/core/injection/compile/not-expressible.ts";
import type { RolloutSettings } from "../../../shared/core/rollout/rollout-settings.ts";
import { inFile } from "../../../shared/install/webhooks/webhook-configurations.ts";
import { type Cluster, CONTROLLER_REVISIONS } from "../../../shared/kube/port.ts";
import { writeYamlDocuments } from "../../../shared/kube/yaml.ts";
import { readConfig } from "../../../shared/settings/config.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Command, Input } from "../command.ts";
import { readGivenSet } from "../input/given-set.ts";
import { listSets, nowText, readSet } from "../input/read-set.ts";
import type { Session } from "../session.ts";

/** Exit code when the policy leaves something out. */
const PARTLY = 3;

function failurePolicyOf(given: string): "Ignore" | "Fail" {
  if (given === "Ignore" || given === "Fail") return given;
  throw new CliError(`--failure-policy ${given}: write Ignore (the default) or Fail`);
}

/** Revisions of a SidecarSet whose injection strategy names one revision for new pods. */
async function revisionsOf(
  cluster: Cluster,
  { metadata, spec }: SidecarSet,
  namespace: string,
): Promise<readonly ControllerRevision[]> {
  if (spec.injectionStrategy?.revision === undefined) return [];
  const options = { namespace, labelSelector: `${SIDECARSET_NAME_LABEL}=${metadata?.name}` };
  return (await listAll<ControllerRevision, ControllerRevision>(cluster, CONTROLLER_REVISIONS, options, (one) => one))
    .items;
}

interface Source {
  readonly sidecarSet: SidecarSet;
  readonly others: readonly SidecarSet[];
  readonly revisions: readonly ControllerRevision[];
  /** settings of the passes, which run with the webhooks' gates; absent: FEATURE_GATES here */
  readonly settings?: RolloutSettings;
  readonly isServed: boolean;
}

const NOT_SERVED =
  "this API server does not serve MutatingAdmissionPolicy in admissionregistration.k8s.io/v1, as 1.36 and newer do, so it refuses what is printed";

/** A file is compiled without the cluster, so canaries are unknown. */
async function readSource(input: Input, session: Session): Promise<Source> {
  const name = input.argument(0);
  const given = await readGivenSet(session.screen, input.list("filename"), name);
  if (given) return { sidecarSet: given.sidecarSet, others: [], revisions: [], isServed: true };
  const cluster = await session.cluster();
  const sidecarSet = await readSet(cluster, name);
  const revisions = await revisionsOf(cluster, sidecarSet, session.kruiseNamespace);
  const settings = await session.passSettings(cluster);
  const isServed = await isMutatingPolicyServed(cluster);
  return { sidecarSet, others: await listSets(cluster), revisions, settings, isServed };
}

function sentence({ field, reason, effect }: NotExpressible): string {
  return `${field}: ${reason}; ${effect}`;
}

function asText(objects: readonly KubernetesObject[], notExpressible: readonly NotExpressible[]): string {
  const comments = notExpressible.map((one) => `# not expressible: ${sentence(one)}\n`).join("");
  return comments + writeYamlDocuments(objects);
}

export const COMPILE: Command = {
  name: "compile",
  group: "Install it",
  summary: "a policy that injects a SidecarSet without any webhook, as YAML for kubectl apply",
  details:
    "The API server injects by it while the webhook is down. It is a copy of the SidecarSet: compile again after each change. What a policy cannot do is told on stderr, field by field.",
  arguments: [{ name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" }],
  options: [
    {
      flags: "-f, --filename <FILE>",
      about: "the SidecarSet as this file has it; the cluster is not asked",
      isList: true,
    },
    { flags: "--to <TARGET>", about: "map: MutatingAdmissionPolicy, Kubernetes 1.36 or newer", choices: ["map"] },
    {
      flags: "--failure-policy <POLICY>",
      about: "what becomes of pods that the policy fails on: Ignore (default) or Fail",
    },
    { flags: "--static", about: "for a file that API servers read, Kubernetes 1.37 or newer (docs/install-static.md)" },
  ],
  examples: [
    "sidecarset compile --to map log-agent | kubectl apply -f -",
    "sidecarset compile --to map log-agent -f log-agent.yaml > policy.yaml   # nothing is asked of a cluster",
  ],
  exits: [`${PARTLY}  some of the SidecarSet is left out, or all of it`],
  run: async (input, session) => {
    input.required("to");
    const { featureGates: own, kruiseNamespace } = readConfig();
    const { sidecarSet, settings, isServed, ...neighbours } = await readSource(input, session);
    const featureGates = { ...own, ...settings };
    const { objects, notExpressible } = compileSidecarSet(sidecarSet, {
      now: nowText(),
      kruiseNamespace,
      failurePolicy: failurePolicyOf(input.text("failure-policy") ?? "Ignore"),
      sortContainersByName: featureGates.EnableSortSidecarContainerByName,
      mayDecline: featureGates.PodOptOut,
      ...neighbours,
    });
    for (const one of notExpressible) session.screen.warn(sentence(one));
    if (objects.length > 0 && !isServed) session.screen.warn(NOT_SERVED);
    const printed = input.isSet("static") ? objects.map(inFile) : objects;
    if (objects.length > 0) session.screen.text(asText(printed, notExpressible));
    return notExpressible.length > 0 ? PARTLY : 0;
  },
};
