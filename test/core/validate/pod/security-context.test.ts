import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  [
    "a runAsUser and a runAsGroup at the ends of their range are accepted",
    { securityContext: { runAsUser: 0, runAsGroup: 2147483647 } },
    [],
  ],
  [
    "a runAsUser and a runAsGroup out of range are refused",
    { securityContext: { runAsUser: -1, runAsGroup: 2147483648 } },
    [
      "container.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "container.securityContext.runAsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
    ],
  ],
  ["a procMount of Default is accepted", { securityContext: { procMount: "Default" } }, []],
  [
    "a procMount of Unmasked without hostUsers false is refused",
    { securityContext: { procMount: "Unmasked" } },
    ['container.securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`'],
  ],
  [
    "an unknown procMount is refused",
    { securityContext: { procMount: "Some" } },
    ['container.securityContext.procMount: Unsupported value: "Some": supported values: "Default", "Unmasked"'],
  ],
  [
    "the seccomp profile RuntimeDefault is accepted",
    { securityContext: { seccompProfile: { type: "RuntimeDefault" } } },
    [],
  ],
  ["the seccomp profile Unconfined is accepted", { securityContext: { seccompProfile: { type: "Unconfined" } } }, []],
  [
    "a Localhost seccomp profile with a file is accepted",
    { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "a/b" } } },
    [],
  ],
  [
    "a Localhost seccomp profile with an absolute path is refused",
    { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "/a" } } },
    ['container.securityContext.seccompProfile.localhostProfile: Invalid value: "/a": must be a relative path'],
  ],
  [
    "a seccomp profile without a type is refused",
    { securityContext: { seccompProfile: {} } },
    ["container.securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set"],
  ],
  [
    "a seccomp profile of an unknown type with a file is refused",
    { securityContext: { seccompProfile: { type: "Some", localhostProfile: "a" } } },
    [
      'container.securityContext.seccompProfile.type: Unsupported value: "Some": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
      'container.securityContext.seccompProfile.localhostProfile: Invalid value: {"type":"Some","localhostProfile":"a"}: can only be set when seccomp type is Localhost',
    ],
  ],
  [
    "the AppArmor profile RuntimeDefault is accepted",
    { securityContext: { appArmorProfile: { type: "RuntimeDefault" } } },
    [],
  ],
  [
    "a Localhost AppArmor profile with a file is accepted",
    { securityContext: { appArmorProfile: { type: "Localhost", localhostProfile: "a" } } },
    [],
  ],
  [
    "a Localhost AppArmor profile without a file is refused",
    { securityContext: { appArmorProfile: { type: "Localhost" } } },
    [
      "container.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost",
    ],
  ],
  [
    "a Localhost AppArmor profile with an empty file name is refused",
    { securityContext: { appArmorProfile: { type: "Localhost", localhostProfile: "" } } },
    [
      "container.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost",
    ],
  ],
  [
    "a Localhost AppArmor profile whose file name begins with a space is refused",
    { securityContext: { appArmorProfile: { type: "Localhost", localhostProfile: " a" } } },
    [
      'container.securityContext.appArmorProfile.localhostProfile: Invalid value: " a": must not be padded with whitespace',
    ],
  ],
  [
    "an AppArmor profile without a type is refused",
    { securityContext: { appArmorProfile: {} } },
    ["container.securityContext.appArmorProfile.type: Required value: type is required when appArmorProfile is set"],
  ],
  [
    "an AppArmor profile of an unknown type with a file is refused",
    { securityContext: { appArmorProfile: { type: "Some", localhostProfile: "a" } } },
    [
      'container.securityContext.appArmorProfile.type: Unsupported value: "Some": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
    ],
  ],
  [
    "the AppArmor profile RuntimeDefault with a file is refused",
    { securityContext: { appArmorProfile: { type: "RuntimeDefault", localhostProfile: "a" } } },
    [
      'container.securityContext.appArmorProfile.localhostProfile: Invalid value: "a": can only be set when AppArmor type is Localhost',
    ],
  ],
  [
    "allowPrivilegeEscalation false without privileges is accepted",
    { securityContext: { allowPrivilegeEscalation: false, privileged: false, capabilities: { add: ["NET_ADMIN"] } } },
    [],
  ],
  [
    "allowPrivilegeEscalation true with privileged and CAP_SYS_ADMIN is accepted",
    { securityContext: { allowPrivilegeEscalation: true, privileged: true, capabilities: { add: ["CAP_SYS_ADMIN"] } } },
    [],
  ],
  [
    "allowPrivilegeEscalation false with CAP_SYS_ADMIN is refused",
    { securityContext: { allowPrivilegeEscalation: false, capabilities: { add: ["CAP_SYS_ADMIN", "CHOWN"] } } },
    [
      'container.securityContext: Invalid value: {"allowPrivilegeEscalation":false,"capabilities":{"add":["CAP_SYS_ADMIN","CHOWN"]}}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN',
    ],
  ],
  [
    "a Windows user without a domain is accepted",
    {
      securityContext: {
        windowsOptions: { runAsUserName: "ContainerUser", gmsaCredentialSpecName: "a.b", gmsaCredentialSpec: "x" },
      },
    },
    [],
  ],
  [
    "a Windows user with a NetBIOS domain is accepted",
    { securityContext: { windowsOptions: { runAsUserName: "Domain\\user name" } } },
    [],
  ],
  [
    "a Windows user with a DNS domain is accepted",
    { securityContext: { windowsOptions: { runAsUserName: "a-1.example.com\\u" } } },
    [],
  ],
  [
    "an empty Windows user name is refused",
    { securityContext: { windowsOptions: { runAsUserName: "" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string',
    ],
  ],
  [
    "a Windows user name with a tab is refused",
    { securityContext: { windowsOptions: { runAsUserName: "a\tb" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\tb": runAsUserName cannot contain control characters',
    ],
  ],
  [
    "a Windows user name with a delete character is refused",
    { securityContext: { windowsOptions: { runAsUserName: "ab" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\x7fb": runAsUserName cannot contain control characters',
    ],
  ],
  [
    "a Windows user name with two backslashes is refused",
    { securityContext: { windowsOptions: { runAsUserName: "a\\b\\c" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": runAsUserName cannot contain more than one backslash',
    ],
  ],
  [
    "a Windows user with a domain and no name is refused",
    { securityContext: { windowsOptions: { runAsUserName: "a\\" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\\\": runAsUserName\'s User cannot be empty',
    ],
  ],
  [
    "a Windows user with an empty domain is refused",
    { securityContext: { windowsOptions: { runAsUserName: "\\u" } } },
    [
      "container.securityContext.windowsOptions.runAsUserName: Invalid value: \"\\\\u\": runAsUserName's Domain doesn't match the NetBios nor the DNS format",
    ],
  ],
  [
    "a Windows user whose domain begins with a dot is refused",
    { securityContext: { windowsOptions: { runAsUserName: ".a\\u" } } },
    [
      "container.securityContext.windowsOptions.runAsUserName: Invalid value: \".a\\\\u\": runAsUserName's Domain doesn't match the NetBios nor the DNS format",
    ],
  ],
  [
    "a Windows user whose domain has 16 characters and a space is refused",
    { securityContext: { windowsOptions: { runAsUserName: "a b4567890123456\\u" } } },
    [
      "container.securityContext.windowsOptions.runAsUserName: Invalid value: \"a b4567890123456\\\\u\": runAsUserName's Domain doesn't match the NetBios nor the DNS format",
    ],
  ],
  [
    "a Windows user whose domain has 15 characters and a space is accepted",
    { securityContext: { windowsOptions: { runAsUserName: "a b456789012345\\u" } } },
    [],
  ],
  [
    "a Windows user whose domain has a star is refused",
    { securityContext: { windowsOptions: { runAsUserName: "a*b\\u" } } },
    [
      "container.securityContext.windowsOptions.runAsUserName: Invalid value: \"a*b\\\\u\": runAsUserName's Domain doesn't match the NetBios nor the DNS format",
    ],
  ],
  [
    "a Windows user name of only dots and spaces is refused",
    { securityContext: { windowsOptions: { runAsUserName: ". ." } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: ". .": runAsUserName\'s User cannot contain only periods or spaces',
    ],
  ],
  [
    "a Windows user name with a dot and a space is accepted",
    { securityContext: { windowsOptions: { runAsUserName: "a. b" } } },
    [],
  ],
  [
    "a Windows user name with a colon is refused",
    { securityContext: { windowsOptions: { runAsUserName: "a:b" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a:b": runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]',
    ],
  ],
  [
    "an empty gmsaCredentialSpec is refused",
    { securityContext: { windowsOptions: { gmsaCredentialSpec: "" } } },
    [
      'container.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string',
    ],
  ],
  [
    "an invalid gmsaCredentialSpecName is refused",
    { securityContext: { windowsOptions: { gmsaCredentialSpecName: "A" } } },
    [
      "container.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
];

describe("validation of a securityContext:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
