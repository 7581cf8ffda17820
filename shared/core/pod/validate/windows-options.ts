/** Decides whether a container's Windows identity may be declared as it is. */
import type { WindowsOptions } from "../../../api/container.ts";
import { type FieldError, invalidEach } from "../../../go/field-error.ts";
import { byteLength, dnsSubdomainErrors } from "../../../go/label-name.ts";

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

export function validateWindowsOptions(options: WindowsOptions | undefined, field: string): readonly FieldError[] {
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
