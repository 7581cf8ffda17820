/** Returns the errors of Kubernetes for one volume or one container in an otherwise valid pod. */
import type { SidecarSetSpec } from "../../../../shared/api/sidecarset.ts";
import { validatePod } from "../../../../shared/core/pod/validate/pod.ts";
import { printFieldError } from "../../../../shared/go/field-error.ts";

export type Fields = Readonly<Record<string, unknown>>;

const CONTAINER = { name: "c", image: "i", imagePullPolicy: "Always", terminationMessagePolicy: "File" };

function errorsOf(spec: Fields): readonly string[] {
  return validatePod(spec as unknown as SidecarSetSpec).map(printFieldError);
}

/** Returns the errors of a volume; `volume` replaces its path. */
export function errorsOfVolume(source: Fields): readonly string[] {
  return errorsOf({ volumes: [{ name: "v", ...source }] }).map((error) => error.replace("spec.volumes[0]", "volume"));
}

/** Returns the errors of a container; `container` replaces its path. */
export function errorsOfContainer(changes: Fields, volumes: readonly Fields[] = []): readonly string[] {
  const errors = errorsOf({ containers: [{ ...CONTAINER, ...changes }], volumes });
  return errors.map((error) => error.replace("spec.containers[0]", "container"));
}
