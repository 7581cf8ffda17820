/** A valid SidecarSet that tests change in one place, and the validation errors of the result. */
import type { SidecarContainer, SidecarSet, SidecarSetSpec } from "../../../shared/api/sidecarset.ts";
import { sidecarSetErrors, type ValidationView } from "../../../shared/core/sidecarset/validate/sidecarset.ts";
import { printFieldError } from "../../../shared/go/field-error.ts";

export const AGENT: SidecarContainer & Record<string, unknown> = {
  name: "agent",
  image: "nginx:1.25",
  imagePullPolicy: "IfNotPresent",
  terminationMessagePolicy: "File",
  podInjectPolicy: "BeforeAppContainer",
  shareVolumePolicy: { type: "disabled" },
  upgradeStrategy: { upgradeType: "ColdUpgrade" },
};

export function container(changes: Readonly<Record<string, unknown>>): SidecarContainer {
  return { ...AGENT, ...changes };
}

export function sidecarSet(spec: Partial<SidecarSetSpec> = {}, metadata: SidecarSet["metadata"] = {}): SidecarSet {
  return {
    metadata: { name: "logs", ...metadata },
    spec: {
      selector: { matchLabels: { app: "web" } },
      containers: [AGENT],
      updateStrategy: { type: "RollingUpdate", partition: 0, maxUnavailable: 1 },
      ...spec,
    },
  };
}

const EMPTY: ValidationView = {
  sidecarSets: [],
  controllerRevisions: [],
  configMaps: [],
  kruiseNamespace: "kruise-system",
  isAllowedByDefault: false,
};

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.freeze(value);
    for (const member of Object.values(value)) deepFreeze(member);
  }
  return value;
}

/** Returns the texts of all errors. The arguments are frozen, so every write to them throws. */
export function errorsOf(given: SidecarSet, view: Partial<ValidationView> = {}, older?: SidecarSet): readonly string[] {
  return sidecarSetErrors(deepFreeze(given), deepFreeze(older), deepFreeze({ ...EMPTY, ...view })).map(printFieldError);
}

export function other(spec: Partial<SidecarSetSpec> = {}, name = "other"): SidecarSet {
  return sidecarSet(spec, { name });
}
