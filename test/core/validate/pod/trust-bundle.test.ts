import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** The errors are those of the validation in Kubernetes 1.32. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  [
    "a trust bundle name without a signer is accepted",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com" } }] } },
    [],
  ],
  [
    "a trust bundle name with a signer is accepted",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com:signer:roots" } }] } },
    [],
  ],
  [
    "a trust bundle name that ends in a colon is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com:" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.name: Invalid value: \"example.com:\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a trust bundle name that begins with a colon is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: ":roots" } }] } },
    [
      'volume.projected.sources[0].clusterTrustBundle.name: Invalid value: ":roots": not a valid clustertrustbundlename: ClusterTrustBundle without signer name must not have ":" in its name',
    ],
  ],
  [
    "an invalid trust bundle name is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "Roots" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.name: Invalid value: \"Roots\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a trust bundle name that is invalid after the signer is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com:signer:Roots" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.name: Invalid value: \"example.com:signer:Roots\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a trust bundle name with a slash in the signer is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com/signer:roots" } }] } },
    [
      'volume.projected.sources[0].clusterTrustBundle.name: Invalid value: "example.com/signer:roots": not a valid clustertrustbundlename: ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:',
    ],
  ],
  [
    "an empty trust bundle name is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.name: Required value: must be a valid object name",
      "volume.projected.sources[0].clusterTrustBundle.name: Invalid value: \"\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a trust bundle with both a name and a labelSelector is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "a", labelSelector: {} } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified",
    ],
  ],
  [
    "a trust bundle with a signerName and a labelSelector is accepted",
    {
      projected: {
        sources: [
          {
            clusterTrustBundle: {
              path: "ca.pem",
              signerName: "example.com/signer",
              labelSelector: { matchLabels: { a: "b" } },
            },
          },
        ],
      },
    },
    [],
  ],
  [
    "a trust bundle with both a name and a signerName is refused",
    {
      projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "a", signerName: "example.com/signer" } }] },
    },
    [
      'volume.projected.sources[0].clusterTrustBundle: Invalid value: {"path":"ca.pem","name":"a","signerName":"example.com/signer"}: only one of name and signerName may be used',
    ],
  ],
  [
    "a trust bundle without a name and a signerName is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem" } }] } },
    ["volume.projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified"],
  ],
  [
    "an empty signerName is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Required value: must be a valid signer name",
      "volume.projected.sources[0].clusterTrustBundle.signerName: Required value",
    ],
  ],
  [
    "a signerName without a path is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example.com" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: \"example.com\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
    ],
  ],
  [
    "a signerName with two paths is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example.com/a/b" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: \"example.com/a/b\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
    ],
  ],
  [
    "a signerName whose domain has only one label is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example/a" } }] } },
    [
      'volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: "example": should be a domain with at least two segments separated by dots',
    ],
  ],
  [
    "a signerName with an invalid label in its domain is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example.Com.Org/a" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: \"example.Com.Org\": validating label \"Com\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "a signerName with an invalid label in its path is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example.com/a.B" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: \"a.B\": validating label \"B\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a labelSelector with an invalid label key is refused",
    {
      projected: {
        sources: [
          {
            clusterTrustBundle: {
              path: "ca.pem",
              signerName: "example.com/signer",
              labelSelector: { matchLabels: { "a b": "c" } },
            },
          },
        ],
      },
    },
    [
      "volume.projected.sources[0].clusterTrustBundle.labelSelector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  [
    "a trust bundle without a path is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "", name: "a" } }] } },
    ["volume.projected.sources[0].clusterTrustBundle.path: Required value"],
  ],
  [
    "a trust bundle whose path begins with two dots is refused",
    { projected: { sources: [{ clusterTrustBundle: { path: "..a", name: "a" } }] } },
    ["volume.projected.sources[0].clusterTrustBundle.path: Invalid value: \"..a\": must not start with '..'"],
  ],
  [
    "two trust bundles at the same path are refused",
    {
      projected: {
        sources: [{ clusterTrustBundle: { path: "a", name: "a" } }, { clusterTrustBundle: { path: "a", name: "a" } }],
      },
    },
    ['volume.projected: Invalid value: "a": conflicting duplicate paths'],
  ],
];

describe("validation of a trust bundle:", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
