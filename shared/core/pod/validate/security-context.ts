/** Decides whether a container may run with the rights that it asks for. */
import type { SecurityContext, SecurityProfile } from "../../../api/container.ts";
import { type FieldError, invalid, notSupported, required, tooLong } from "../../../go/field-error.ts";
import { byteLength } from "../../../go/label-name.ts";
import { validateRange } from "../../admission/integer.ts";
import { validateDescendingPath } from "./path.ts";
import { validateWindowsOptions } from "./windows-options.ts";

const ID_RANGE: readonly [number, number] = [0, 2147483647];
const PROC_MOUNTS = ["Default", "Unmasked"];
const PROFILE_TYPES = ["Localhost", "RuntimeDefault", "Unconfined"];
const LOCALHOST_LIMIT = 4095;

function validateProfileType(type: string, field: string, title: string): readonly FieldError[] {
  if (type === "") return [required(field, `type is required when ${title} is set`)];
  return PROFILE_TYPES.includes(type) ? [] : [notSupported(field, type, PROFILE_TYPES)];
}

function validateSeccompFile(profile: SecurityProfile, field: string): readonly FieldError[] {
  const { type, localhostProfile } = profile;
  if (type !== "Localhost") {
    const detail = "can only be set when seccomp type is Localhost";
    return localhostProfile == null ? [] : [invalid(field, profile, detail)];
  }
  if (localhostProfile == null) return [required(field, "must be set when seccomp type is Localhost")];
  return validateDescendingPath(localhostProfile, field);
}

function validateSeccomp(profile: SecurityProfile | undefined, field: string): readonly FieldError[] {
  if (profile == null) return [];
  return [
    ...validateProfileType(profile.type ?? "", `${field}.type`, "seccompProfile"),
    ...validateSeccompFile(profile, `${field}.localhostProfile`),
  ];
}

function validateAppArmorFile(localhostProfile: string | undefined, field: string): readonly FieldError[] {
  const missing = required(field, "must be set when AppArmor type is Localhost");
  if (localhostProfile == null) return [missing];
  const trimmed = localhostProfile.trim();
  return [
    ...(trimmed === localhostProfile
      ? trimmed === ""
        ? [missing]
        : []
      : [invalid(field, localhostProfile, "must not be padded with whitespace")]),
    ...(byteLength(localhostProfile) > LOCALHOST_LIMIT ? [tooLong(field, LOCALHOST_LIMIT)] : []),
  ];
}

function validateAppArmor(profile: SecurityProfile | undefined, field: string): readonly FieldError[] {
  if (profile == null) return [];
  const { type = "", localhostProfile } = profile;
  const fileField = `${field}.localhostProfile`;
  if (type === "Localhost") return validateAppArmorFile(localhostProfile, fileField);
  const errors = validateProfileType(type, `${field}.type`, "appArmorProfile");
  if (errors.length > 0 || localhostProfile == null) return errors;
  return [invalid(fileField, localhostProfile, "can only be set when AppArmor type is Localhost")];
}

function validateProcMount(procMount: string | undefined, field: string): readonly FieldError[] {
  if (procMount == null) return [];
  if (!PROC_MOUNTS.includes(procMount)) return [notSupported(field, procMount, PROC_MOUNTS)];
  return procMount === "Unmasked" ? [invalid(field, procMount, "`hostUsers` must be false to use `Unmasked`")] : [];
}

function validateEscalation(context: SecurityContext, field: string): readonly FieldError[] {
  if (context.allowPrivilegeEscalation !== false) return [];
  const admins = (context.capabilities?.add ?? []).filter((capability) => capability === "CAP_SYS_ADMIN");
  const detail = "cannot set `allowPrivilegeEscalation` to false and";
  return [
    ...(context.privileged === true ? [invalid(field, context, `${detail} \`privileged\` to true`)] : []),
    ...admins.map(() => invalid(field, context, `${detail} \`capabilities.Add\` CAP_SYS_ADMIN`)),
  ];
}

/** Privileged containers are allowed, and the pod uses the host's users. */
export function validateSecurityContext(context: SecurityContext | undefined, field: string): readonly FieldError[] {
  if (context == null) return [];
  const { runAsUser, runAsGroup } = context;
  return [
    ...(runAsUser == null ? [] : validateRange(runAsUser, `${field}.runAsUser`, ID_RANGE)),
    ...(runAsGroup == null ? [] : validateRange(runAsGroup, `${field}.runAsGroup`, ID_RANGE)),
    ...validateProcMount(context.procMount, `${field}.procMount`),
    ...validateSeccomp(context.seccompProfile, `${field}.seccompProfile`),
    ...validateEscalation(context, field),
    ...validateWindowsOptions(context.windowsOptions, `${field}.windowsOptions`),
    ...validateAppArmor(context.appArmorProfile, `${field}.appArmorProfile`),
  ];
}
