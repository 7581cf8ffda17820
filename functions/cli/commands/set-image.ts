/** `set image` and `canary`: new images for sidecars, in all pods or in a share of them. */
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { commandText } from "../../../shared/core/pod/command-text.ts";
import { parseImageReference } from "../../../shared/go/image-reference.ts";
import { CliError } from "../../terminal/screen.ts";
import type { Command } from "../command.ts";
import { changeSet, DRY_RUN, showUnchanged } from "../input/change-set.ts";
import { readSet } from "../input/read-set.ts";
import { intOrShare } from "./set-strategy.ts";

export const SET_IMAGE: Command = {
  name: "set image",
  group: "During a rollout",
  summary: "give sidecars new images, which begins a rollout",
  arguments: [
    { name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" },
    { name: "<CONTAINER=IMAGE...>", about: "of its containers or init containers", completion: "container" },
  ],
  options: [
    {
      flags: "--partition <PODS>",
      about: "with the same write: so many pods, or such a share of all, stay at the old version",
    },
    DRY_RUN,
  ],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset set image log-agent fluent-bit=fluent/fluent-bit:4.1.2",
    "sidecarset set image log-agent fluent-bit=fluent/fluent-bit:4.1.2 --partition 90%   # a tenth of the pods first",
  ],
  run: async (input, session) => {
    const [name = "", ...pairs] = input.arguments;
    const kept = input.text("partition");
    const partition = kept === undefined ? undefined : intOrShare(`--partition ${kept}`, kept);
    const cluster = await session.cluster();
    const sidecarSet = await readSet(cluster, name);
    const { spec: images, texts } = imageChange(sidecarSet, pairs);
    if (texts.length === 0 && partition === undefined) {
      showUnchanged(session, { sidecarSet: name }, "has these images already");
      return 0;
    }
    const text = [...texts, ...(partition === undefined ? [] : [`partition ${partition}`])].join(", ");
    const spec = { ...images, ...(partition === undefined ? {} : { updateStrategy: { partition } }) };
    await changeSet(input, session, cluster, { sidecarSet, change: { spec, text } });
    return 0;
  },
};

/** The lists of containers with the images of `pairs`, and one text for each changed image. @throws CliError */
function imageChange(
  sidecarSet: SidecarSet,
  pairs: readonly string[],
): { readonly spec: Pick<SidecarSetSpec, "containers" | "initContainers">; readonly texts: readonly string[] } {
  const images = new Map(pairs.map((pair) => pairOf(pair, sidecarSet)));
  const changes = containersOf(sidecarSet).filter(({ name, image }) => images.has(name) && images.get(name) !== image);
  const withImages = (list: readonly SidecarContainer[]) =>
    list.map((one) => ({ ...one, ...(images.has(one.name) ? { image: images.get(one.name) ?? "" } : {}) }));
  const { containers, initContainers } = sidecarSet.spec;
  return {
    spec: {
      ...(containers ? { containers: withImages(containers) } : {}),
      ...(initContainers ? { initContainers: withImages(initContainers) } : {}),
    },
    texts: changes.map(({ name, image }) => `${name} ${image} → ${images.get(name)}`),
  };
}

export function containersOf({ spec }: SidecarSet): readonly SidecarContainer[] {
  return [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
}

function pairOf(pair: string, sidecarSet: SidecarSet): readonly [string, string] {
  const at = pair.indexOf("=");
  const [name, image] = [pair.slice(0, Math.max(0, at)), pair.slice(at + 1)];
  if (at < 1 || image === "") throw new CliError(`${pair}: write CONTAINER=IMAGE`);
  const names = containersOf(sidecarSet).map((one) => one.name);
  if (!names.includes(name))
    throw new CliError(
      `${pair}: SidecarSet ${sidecarSet.metadata?.name} has no container ${name}; it has ${names.join(", ")}`,
    );
  if (parseImageReference(image) === undefined)
    throw new CliError(`${pair}: ${image} is no image reference; write for example registry/name:tag`);
  return [name, image];
}

// `canary`: new images for a part of the running pods, and for the same part of the new pods.

export const CANARY: Command = {
  name: "canary",
  group: "During a rollout",
  summary: "give new images to a share of the running pods, and to the same share of new pods",
  details:
    "One write sets the images, the partition, and injectionStrategy.revision with the policy Partial, so that other new pods still get the present revision. promote --step 10% goes on, promote ends it, abort takes it back.",
  arguments: [
    { name: "<NAME>", about: "of the SidecarSet", completion: "sidecarset" },
    { name: "<CONTAINER=IMAGE...>", about: "of its containers or init containers", completion: "container" },
  ],
  options: [{ flags: "--share <SHARE>", about: "that gets the new images, from 1% to 99%; default: 10%" }, DRY_RUN],
  outputs: ["table", "json", "yaml"],
  examples: [
    "sidecarset canary log-agent fluent-bit=fluent/fluent-bit:4.1.2",
    "sidecarset canary log-agent fluent-bit=fluent/fluent-bit:4.1.2 --share 1%",
  ],
  run: async (input, session) => {
    const [name = "", ...pairs] = input.arguments;
    const share = shareOf(input.text("share") ?? "10%");
    const cluster = await session.cluster();
    const sidecarSet = await readSet(cluster, name);
    const { spec, texts } = imageChange(sidecarSet, pairs);
    if (texts.length === 0) throw new CliError(`${name}: has these images already, so there is nothing to try`);
    const revisionName = presentRevision(sidecarSet);
    const strategy = {
      updateStrategy: { partition: `${100 - share}%` },
      injectionStrategy: { revision: { revisionName, customVersion: null, policy: "Partial" } },
    };
    const text = `${texts.join(", ")}, for ${share}% of the pods; the others, new ones too, stay at ${revisionName}`;
    const { type, paused } = sidecarSet.spec.updateStrategy ?? {};
    const notes = [
      ...(paused
        ? ["The rollout is paused: until sidecarset resume all new pods get the present revision, and nothing moves."]
        : []),
      ...(type === "NotUpdate" ? ["The update strategy is NotUpdate: only new pods get the new images."] : []),
    ];
    await changeSet(input, session, cluster, { sidecarSet, change: { spec: { ...spec, ...strategy }, text, notes } });
    return 0;
  },
};

function shareOf(text: string): number {
  const share = /^\d{1,2}%$/.test(text) ? Number.parseInt(text, 10) : 0;
  if (share >= 1) return share;
  throw new CliError(`--share ${text}: write a share from 1% to 99%`);
}

/** The revision that new pods get now. A pass must have recorded it. */
function presentRevision({ metadata, spec, status }: SidecarSet): string {
  const name = metadata?.name ?? "";
  const pinned = spec.injectionStrategy?.revision;
  if (pinned?.revisionName || pinned?.customVersion)
    throw new CliError(
      `${name}: new pods are pinned to ${pinned.revisionName ?? pinned.customVersion} already (spec.injectionStrategy.revision); ${commandText`sidecarset promote ${name} ends a canary, sidecarset abort ${name} takes it back`}`,
    );
  const isRecorded = status?.observedGeneration === metadata?.generation && status?.latestRevision;
  if (isRecorded) return isRecorded;
  throw new CliError(
    `${name}: no pass has recorded its present revision yet, so new pods could not stay at it; wait for the next one, or start it: sidecarset tick`,
  );
}
