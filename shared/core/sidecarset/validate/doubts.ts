/** Finds what a SidecarSet may be stored with, though every pod that gets it would fail. */
import type { SidecarContainer, SidecarSet } from "../../../api/sidecarset.ts";
import { parseImageReference } from "../../../go/image-reference.ts";
import { isHotUpgradeIn, slotNames } from "../../pod/sidecar-containers.ts";
import { competitorsOf } from "./conflict.ts";

const LISTS = ["initContainers", "containers"] as const;
/** of a container's name */
const MOST_LETTERS = 63;

interface Named {
  /** in a pod */
  readonly name: string;
  readonly field: string;
  /** the sidecar whose hot upgrades need the name; absent: it is the sidecar's own name */
  readonly slotOf?: string;
}

/** One sentence each, which begins with the field. */
export function doubtsOf(sidecarSet: SidecarSet, others: readonly SidecarSet[]): readonly string[] {
  const own = namesIn(sidecarSet);
  return [
    ...LISTS.flatMap((list) =>
      (sidecarSet.spec[list] ?? []).flatMap((one, index) => unreadableImage(one, `spec.${list}[${index}]`)),
    ),
    ...own.flatMap(tooLong),
    ...own.flatMap((one, index) => takenTwice(one, own.slice(0, index))),
    ...takenElsewhere(own, competitorsOf(sidecarSet, others)),
    ...tooMany(sidecarSet),
  ];
}

function namesIn({ spec }: SidecarSet): readonly Named[] {
  return LISTS.flatMap((list) =>
    (spec[list] ?? []).flatMap((sidecar, index): readonly Named[] => {
      const field = `spec.${list}[${index}].name`;
      if (!isHotUpgradeIn(sidecar, list)) return [{ name: sidecar.name, field }];
      return slotNames(sidecar.name).map((name) => ({ name, field, slotOf: sidecar.name }));
    }),
  );
}

function unreadableImage({ image }: SidecarContainer, place: string): readonly string[] {
  if (!image || parseImageReference(image) !== undefined) return [];
  return [`${place}.image: ${JSON.stringify(image)} is no image reference: kubelets refuse it (InvalidImageName)`];
}

function tooLong({ name, field, slotOf }: Named): readonly string[] {
  if (slotOf === undefined || name.length <= MOST_LETTERS || name.endsWith("-2")) return [];
  return [
    `${field}: hot upgrades add -1 and -2 to the name, which is longer than ${MOST_LETTERS} letters then: the API server would refuse every pod that gets it`,
  ];
}

function takenTwice(one: Named, before: readonly Named[]): readonly string[] {
  const other = before.find(({ name, slotOf }) => name === one.name && (slotOf ?? one.slotOf) !== undefined);
  if (other === undefined) return [];
  return [
    `${one.field}: a pod would have two containers ${one.name}, because hot upgrades of ${other.slotOf ?? one.slotOf} need that name too: the API server would refuse every pod that gets them`,
  ];
}

function takenElsewhere(own: readonly Named[], competitors: readonly SidecarSet[]): readonly string[] {
  return competitors.flatMap((other) => {
    const theirs = namesIn(other);
    return own.flatMap((one) => {
      const taken = theirs.find(({ name, slotOf }) => name === one.name && (slotOf ?? one.slotOf) !== undefined);
      if (taken === undefined) return [];
      return [
        `${one.field}: a pod of SidecarSet ${other.metadata?.name} too would have two containers ${one.name}, because hot upgrades of ${taken.slotOf ?? one.slotOf} need that name: the API server would refuse it`,
      ];
    });
  });
}

const SHARES = ["maxUnavailable", "partition"] as const;

/** Percentages over 100 count as 100. */
function tooMany({ spec: { updateStrategy = {} } }: SidecarSet): readonly string[] {
  return SHARES.flatMap((name) => {
    const share = updateStrategy[name];
    const percent = typeof share === "string" ? Number(/^(\d+)%$/.exec(share)?.[1] ?? 0) : 0;
    return percent > 100 ? [`spec.updateStrategy.${name}: ${share} is more than all pods; it counts as 100%`] : [];
  });
}
