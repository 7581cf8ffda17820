import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** What the validation of Kubernetes 1.32 objects to. */
const rows: readonly (readonly [sentence: string, source: Fields, errors: readonly string[]])[] = [
  [
    "one of no signer",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com" } }] } },
    [],
  ],
  [
    "one of a signer",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com:signer:roots" } }] } },
    [],
  ],
  [
    "one whose name ends in a colon",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com:" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.name: Invalid value: \"example.com:\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "one whose name begins with a colon",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: ":roots" } }] } },
    [
      'volume.projected.sources[0].clusterTrustBundle.name: Invalid value: ":roots": not a valid clustertrustbundlename: ClusterTrustBundle without signer name must not have ":" in its name',
    ],
  ],
  [
    "one whose name is none",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "Roots" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.name: Invalid value: \"Roots\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "one whose name after the signer is none",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com:signer:Roots" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.name: Invalid value: \"example.com:signer:Roots\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "one whose signer has a slash",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "example.com/signer:roots" } }] } },
    [
      'volume.projected.sources[0].clusterTrustBundle.name: Invalid value: "example.com/signer:roots": not a valid clustertrustbundlename: ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:',
    ],
  ],
  [
    "one without a name",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.name: Required value: must be a valid object name",
      "volume.projected.sources[0].clusterTrustBundle.name: Invalid value: \"\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "one by name and by labels",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "a", labelSelector: {} } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified",
    ],
  ],
  [
    "all of a signer",
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
    "one by name and signer",
    {
      projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", name: "a", signerName: "example.com/signer" } }] },
    },
    [
      'volume.projected.sources[0].clusterTrustBundle: Invalid value: {"path":"ca.pem","name":"a","signerName":"example.com/signer"}: only one of name and signerName may be used',
    ],
  ],
  [
    "one by neither",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem" } }] } },
    ["volume.projected.sources[0].clusterTrustBundle: Required value: either name or signerName must be specified"],
  ],
  [
    "those of an empty signer",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Required value: must be a valid signer name",
      "volume.projected.sources[0].clusterTrustBundle.signerName: Required value",
    ],
  ],
  [
    "those of a signer without a path",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example.com" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: \"example.com\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
    ],
  ],
  [
    "those of a signer with two paths",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example.com/a/b" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: \"example.com/a/b\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
    ],
  ],
  [
    "those of a signer whose domain is short",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example/a" } }] } },
    [
      'volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: "example": should be a domain with at least two segments separated by dots',
    ],
  ],
  [
    "those of a signer whose domain has a label that is none",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example.Com.Org/a" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: \"example.Com.Org\": validating label \"Com\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "those of a signer whose path has a label that is none",
    { projected: { sources: [{ clusterTrustBundle: { path: "ca.pem", signerName: "example.com/a.B" } }] } },
    [
      "volume.projected.sources[0].clusterTrustBundle.signerName: Invalid value: \"a.B\": validating label \"B\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "those of a signer by labels that are none",
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
    "one without a path",
    { projected: { sources: [{ clusterTrustBundle: { path: "", name: "a" } }] } },
    ["volume.projected.sources[0].clusterTrustBundle.path: Required value"],
  ],
  [
    "one at a reserved path",
    { projected: { sources: [{ clusterTrustBundle: { path: "..a", name: "a" } }] } },
    ["volume.projected.sources[0].clusterTrustBundle.path: Invalid value: \"..a\": must not start with '..'"],
  ],
  [
    "two in one place",
    {
      projected: {
        sources: [{ clusterTrustBundle: { path: "a", name: "a" } }, { clusterTrustBundle: { path: "a", name: "a" } }],
      },
    },
    ['volume.projected: Invalid value: "a": conflicting duplicate paths'],
  ],
];

describe("a trust bundle", () => {
  it.each(rows)("%s", (_sentence, given, errors) => {
    expect(errorsOfVolume(given)).toEqual(errors);
  });
});
