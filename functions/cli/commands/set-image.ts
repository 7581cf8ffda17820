/** `set image`: new images for sidecars. */
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
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

/** The lists of containers with the images of `pairs`, and a text for each that changes. @throws CliError */
export function imageChange(
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
