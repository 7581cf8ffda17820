import { describe, expect, it } from "vitest";
import { errorsOfContainer, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, changes: Fields, errors: readonly string[]])[] = [
  ["users and groups", { securityContext: { runAsUser: 0, runAsGroup: 2147483647 } }, []],
  [
    "users and groups that are none",
    { securityContext: { runAsUser: -1, runAsGroup: 2147483648 } },
    [
      "container.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
      "container.securityContext.runAsGroup: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
    ],
  ],
  ["the default mount of /proc", { securityContext: { procMount: "Default" } }, []],
  [
    "the whole of /proc",
    { securityContext: { procMount: "Unmasked" } },
    ['container.securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false to use `Unmasked`'],
  ],
  [
    "an unknown mount of /proc",
    { securityContext: { procMount: "Some" } },
    ['container.securityContext.procMount: Unsupported value: "Some": supported values: "Default", "Unmasked"'],
  ],
  ["the runtime's seccomp profile", { securityContext: { seccompProfile: { type: "RuntimeDefault" } } }, []],
  ["no seccomp profile", { securityContext: { seccompProfile: { type: "Unconfined" } } }, []],
  [
    "a seccomp profile of the node",
    { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "a/b" } } },
    [],
  ],
  [
    "a seccomp profile of the node at an absolute path",
    { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "/a" } } },
    ['container.securityContext.seccompProfile.localhostProfile: Invalid value: "/a": must be a relative path'],
  ],
  [
    "a seccomp profile of no type",
    { securityContext: { seccompProfile: {} } },
    ["container.securityContext.seccompProfile.type: Required value: type is required when seccompProfile is set"],
  ],
  [
    "a seccomp profile of an unknown type with a file",
    { securityContext: { seccompProfile: { type: "Some", localhostProfile: "a" } } },
    [
      'container.securityContext.seccompProfile.type: Unsupported value: "Some": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
      'container.securityContext.seccompProfile.localhostProfile: Invalid value: {"type":"Some","localhostProfile":"a"}: can only be set when seccomp type is Localhost',
    ],
  ],
  ["an AppArmor profile", { securityContext: { appArmorProfile: { type: "RuntimeDefault" } } }, []],
  [
    "an AppArmor profile of the node",
    { securityContext: { appArmorProfile: { type: "Localhost", localhostProfile: "a" } } },
    [],
  ],
  [
    "an AppArmor profile of the node without a file",
    { securityContext: { appArmorProfile: { type: "Localhost" } } },
    [
      "container.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost",
    ],
  ],
  [
    "an AppArmor profile of the node with an empty file",
    { securityContext: { appArmorProfile: { type: "Localhost", localhostProfile: "" } } },
    [
      "container.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost",
    ],
  ],
  [
    "an AppArmor profile of the node with a padded file",
    { securityContext: { appArmorProfile: { type: "Localhost", localhostProfile: " a" } } },
    [
      'container.securityContext.appArmorProfile.localhostProfile: Invalid value: " a": must not be padded with whitespace',
    ],
  ],
  [
    "an AppArmor profile of no type",
    { securityContext: { appArmorProfile: {} } },
    ["container.securityContext.appArmorProfile.type: Required value: type is required when appArmorProfile is set"],
  ],
  [
    "an AppArmor profile of an unknown type with a file",
    { securityContext: { appArmorProfile: { type: "Some", localhostProfile: "a" } } },
    [
      'container.securityContext.appArmorProfile.type: Unsupported value: "Some": supported values: "Localhost", "RuntimeDefault", "Unconfined"',
    ],
  ],
  [
    "an AppArmor profile of the runtime with a file",
    { securityContext: { appArmorProfile: { type: "RuntimeDefault", localhostProfile: "a" } } },
    [
      'container.securityContext.appArmorProfile.localhostProfile: Invalid value: "a": can only be set when AppArmor type is Localhost',
    ],
  ],
  [
    "no escalation",
    { securityContext: { allowPrivilegeEscalation: false, privileged: false, capabilities: { add: ["NET_ADMIN"] } } },
    [],
  ],
  [
    "escalation of a privileged administrator",
    { securityContext: { allowPrivilegeEscalation: true, privileged: true, capabilities: { add: ["CAP_SYS_ADMIN"] } } },
    [],
  ],
  [
    "no escalation of an administrator",
    { securityContext: { allowPrivilegeEscalation: false, capabilities: { add: ["CAP_SYS_ADMIN", "CHOWN"] } } },
    [
      'container.securityContext: Invalid value: {"allowPrivilegeEscalation":false,"capabilities":{"add":["CAP_SYS_ADMIN","CHOWN"]}}: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN',
    ],
  ],
  [
    "a Windows user",
    {
      securityContext: {
        windowsOptions: { runAsUserName: "ContainerUser", gmsaCredentialSpecName: "a.b", gmsaCredentialSpec: "x" },
      },
    },
    [],
  ],
  ["a Windows user of a domain", { securityContext: { windowsOptions: { runAsUserName: "Domain\\user name" } } }, []],
  [
    "a Windows user of a DNS domain",
    { securityContext: { windowsOptions: { runAsUserName: "a-1.example.com\\u" } } },
    [],
  ],
  [
    "an empty Windows user",
    { securityContext: { windowsOptions: { runAsUserName: "" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string',
    ],
  ],
  [
    "a Windows user with a tab",
    { securityContext: { windowsOptions: { runAsUserName: "a\tb" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\tb": runAsUserName cannot contain control characters',
    ],
  ],
  [
    "a Windows user with a deletion",
    { securityContext: { windowsOptions: { runAsUserName: "ab" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\x7fb": runAsUserName cannot contain control characters',
    ],
  ],
  [
    "a Windows user of two domains",
    { securityContext: { windowsOptions: { runAsUserName: "a\\b\\c" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\\\b\\\\c": runAsUserName cannot contain more than one backslash',
    ],
  ],
  [
    "a Windows user of a domain without a name",
    { securityContext: { windowsOptions: { runAsUserName: "a\\" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a\\\\": runAsUserName\'s User cannot be empty',
    ],
  ],
  [
    "a Windows user without a domain's name",
    { securityContext: { windowsOptions: { runAsUserName: "\\u" } } },
    [
      "container.securityContext.windowsOptions.runAsUserName: Invalid value: \"\\\\u\": runAsUserName's Domain doesn't match the NetBios nor the DNS format",
    ],
  ],
  [
    "a Windows user of a domain that begins with a dot",
    { securityContext: { windowsOptions: { runAsUserName: ".a\\u" } } },
    [
      "container.securityContext.windowsOptions.runAsUserName: Invalid value: \".a\\\\u\": runAsUserName's Domain doesn't match the NetBios nor the DNS format",
    ],
  ],
  [
    "a Windows user of a domain of 16 characters with a space",
    { securityContext: { windowsOptions: { runAsUserName: "a b4567890123456\\u" } } },
    [
      "container.securityContext.windowsOptions.runAsUserName: Invalid value: \"a b4567890123456\\\\u\": runAsUserName's Domain doesn't match the NetBios nor the DNS format",
    ],
  ],
  [
    "a Windows user of a domain of 15 characters with a space",
    { securityContext: { windowsOptions: { runAsUserName: "a b456789012345\\u" } } },
    [],
  ],
  [
    "a Windows user of a domain with a star",
    { securityContext: { windowsOptions: { runAsUserName: "a*b\\u" } } },
    [
      "container.securityContext.windowsOptions.runAsUserName: Invalid value: \"a*b\\\\u\": runAsUserName's Domain doesn't match the NetBios nor the DNS format",
    ],
  ],
  [
    "a Windows user of dots and spaces",
    { securityContext: { windowsOptions: { runAsUserName: ". ." } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: ". .": runAsUserName\'s User cannot contain only periods or spaces',
    ],
  ],
  ["a Windows user with a dot", { securityContext: { windowsOptions: { runAsUserName: "a. b" } } }, []],
  [
    "a Windows user with a colon",
    { securityContext: { windowsOptions: { runAsUserName: "a:b" } } },
    [
      'container.securityContext.windowsOptions.runAsUserName: Invalid value: "a:b": runAsUserName\'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]',
    ],
  ],
  [
    "Windows credentials that are empty",
    { securityContext: { windowsOptions: { gmsaCredentialSpec: "" } } },
    [
      'container.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string',
    ],
  ],
  [
    "Windows credentials by a name that is none",
    { securityContext: { windowsOptions: { gmsaCredentialSpecName: "A" } } },
    [
      "container.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
];

describe("the rights of a container", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfContainer(given)).toEqual(errors);
  });
});
