/** Decides whether the containers of a SidecarSet may be changed as they are. */
import type { SidecarSet } from "../../../api/sidecarset.ts";
import { type FieldError, invalid } from "../../../go/field-error.ts";
import { replacesNotUpgradable } from "../../pod/replaced.ts";

/**
 * Containers may go, but not come; initContainers are free. Where pods are replaced a container may come too: a pod without
 * it is not forgotten then, but replaced.
 */
export function validateContainerUpdate(sidecarSet: SidecarSet, older: SidecarSet): readonly FieldError[] {
  const mayCome = replacesNotUpgradable(sidecarSet);
  const upgradeTypes = new Map(
    older.spec.containers?.map(({ name, upgradeStrategy }) => [name, upgradeStrategy?.upgradeType ?? ""]),
  );
  return (sidecarSet.spec.containers ?? []).flatMap(({ name, upgradeStrategy }) => {
    const upgradeType = upgradeTypes.get(name);
    if (upgradeType === undefined && mayCome) return [];
    if (upgradeType === undefined) return [invalid("spec.containers.name", name, `container ${name} is not found`)];
    if (upgradeType === "" || upgradeType === (upgradeStrategy?.upgradeType ?? "")) return [];
    const detail = `container ${name} upgradeType is immutable`;
    return [invalid("spec.containers.upgradeStrategy.upgradeType", name, detail)];
  });
}
