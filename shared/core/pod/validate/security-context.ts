/** Tells whether Kubernetes would accept a container's security context. */
import type { SecurityContext, SecurityProfile, WindowsOptions } from "../../../api/pod-parts.ts";
import { type FieldError, invalid, invalidEach, notSupported, required, tooLong } from "../../../go/field-error.ts";
import { byteLength, dnsSubdomainErrors } from "../../../go/label-name.ts";
import { validateRange } from "../../admission/integer.ts";
import { validateDescendingPath } from "./handler.ts";

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

/** Validates a security context. Privileged containers are allowed, and the pod uses the host's users. */
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

/** Tells whether Kubernetes would accept a container's Windows identity. */
const SPEC_LIMIT = 64 * 1024;
const DOMAIN_LIMIT = 256;
const USER_LIMIT = 104;

const NETBIOS = /^[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}$/u;
const LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
const DNS_DOMAIN = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
const BAD_USER_CHARACTERS = /["/\\:;|=,+*?<>@[\]]/;
const ONLY_DOTS_AND_SPACES = /^[. ]+$/;

function hasControlCharacter(text: string): boolean {
  return [...text].some((character) => character < " " || character === "\u007f");
}

function domainErrors(domain: string): readonly string[] {
  const isTooLong = byteLength(domain) >= DOMAIN_LIMIT;
  return [
    ...(isTooLong ? [`runAsUserName's Domain length must be under ${DOMAIN_LIMIT} characters`] : []),
    ...(NETBIOS.test(domain) || DNS_DOMAIN.test(domain)
      ? []
      : ["runAsUserName's Domain doesn't match the NetBios nor the DNS format"]),
  ];
}

function userLengthErrors(user: string): readonly string[] {
  if (user === "") return ["runAsUserName's User cannot be empty"];
  const isTooLong = byteLength(user) > USER_LIMIT;
  return isTooLong ? [`runAsUserName's User length must not be longer than ${USER_LIMIT} characters`] : [];
}

function userErrors(user: string): readonly string[] {
  return [
    ...userLengthErrors(user),
    ...(ONLY_DOTS_AND_SPACES.test(user) ? ["runAsUserName's User cannot contain only periods or spaces"] : []),
    ...(BAD_USER_CHARACTERS.test(user)
      ? ["runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"]
      : []),
  ];
}

function runAsUserNameErrors(name: string): readonly string[] {
  if (name === "") return ["runAsUserName cannot be an empty string"];
  if (hasControlCharacter(name)) return ["runAsUserName cannot contain control characters"];
  const [first = "", second, third] = name.split("\\");
  if (third !== undefined) return ["runAsUserName cannot contain more than one backslash"];
  return second === undefined ? userErrors(first) : [...domainErrors(first), ...userErrors(second)];
}

function credentialSpecErrors(spec: string): readonly string[] {
  if (spec === "") return ["gmsaCredentialSpec cannot be an empty string"];
  return byteLength(spec) > SPEC_LIMIT ? ["gmsaCredentialSpec size must be under 64 KiB"] : [];
}

function validateWindowsOptions(options: WindowsOptions | undefined, field: string): readonly FieldError[] {
  const rules = [
    ["gmsaCredentialSpecName", dnsSubdomainErrors],
    ["gmsaCredentialSpec", credentialSpecErrors],
    ["runAsUserName", runAsUserNameErrors],
  ] as const;
  return rules.flatMap(([member, errors]) => {
    const value = options?.[member];
    return value == null ? [] : invalidEach(`${field}.${member}`, value, errors(value));
  });
}
