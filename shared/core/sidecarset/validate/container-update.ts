/** Decides whether the containers of a SidecarSet may be changed as they are. */
import type { SidecarContainer } from "../../../api/sidecarset.ts";
import { type FieldError, invalid } from "../../../go/field-error.ts";

/** Containers may go, but not come; initContainers are free. */
export function validateContainerUpdate(
  containers: readonly SidecarContainer[],
  older: readonly SidecarContainer[],
): readonly FieldError[] {
  const upgradeTypes = new Map(older.map(({ name, upgradeStrategy }) => [name, upgradeStrategy?.upgradeType ?? ""]));
  return containers.flatMap(({ name, upgradeStrategy }) => {
    const upgradeType = upgradeTypes.get(name);
    if (upgradeType === undefined) return [invalid("spec.containers.name", name, `container ${name} is not found`)];
    if (upgradeType === "" || upgradeType === (upgradeStrategy?.upgradeType ?? "")) return [];
    const detail = `container ${name} upgradeType is immutable`;
    return [invalid("spec.containers.upgradeStrategy.upgradeType", name, detail)];
  });
}
