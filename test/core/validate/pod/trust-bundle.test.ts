import { describe, expect, it } from "vitest";
import { errorsOfVolume, type Fields } from "./fixture.ts";

/** Rows with the errors of Kubernetes 1.32's validation. */
const rows: readonly (readonly [sentence: string, bundle: Fields, errors: readonly string[]])[] = [
  ["a trust bundle name without a signer is accepted", { name: "example.com" }, []],
  ["a trust bundle name with a signer is accepted", { name: "example.com:signer:roots" }, []],
  [
    "a trust bundle name that ends in a colon is refused",
    { name: "example.com:" },
    [
      "bundle.name: Invalid value: \"example.com:\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a trust bundle name that begins with a colon is refused",
    { name: ":roots" },
    [
      'bundle.name: Invalid value: ":roots": not a valid clustertrustbundlename: ClusterTrustBundle without signer name must not have ":" in its name',
    ],
  ],
  [
    "an invalid trust bundle name is refused",
    { name: "Roots" },
    [
      "bundle.name: Invalid value: \"Roots\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a trust bundle name that is invalid after the signer is refused",
    { name: "example.com:signer:Roots" },
    [
      "bundle.name: Invalid value: \"example.com:signer:Roots\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a trust bundle name with a slash in the signer is refused",
    { name: "example.com/signer:roots" },
    [
      'bundle.name: Invalid value: "example.com/signer:roots": not a valid clustertrustbundlename: ClusterTrustBundle for signerName example.com/signer must be named with prefix example.com:signer:',
    ],
  ],
  [
    "an empty trust bundle name is refused",
    { name: "" },
    [
      "bundle.name: Required value: must be a valid object name",
      "bundle.name: Invalid value: \"\": not a valid clustertrustbundlename: a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a trust bundle with both a name and a labelSelector is refused",
    { name: "a", labelSelector: {} },
    ["bundle.labelSelector: Invalid value: {}: labelSelector must be unset if name is specified"],
  ],
  [
    "a trust bundle with a signerName and a labelSelector is accepted",
    { signerName: "example.com/signer", labelSelector: { matchLabels: { a: "b" } } },
    [],
  ],
  [
    "a trust bundle with both a name and a signerName is refused",
    { name: "a", signerName: "example.com/signer" },
    [
      'bundle: Invalid value: {"path":"ca.pem","name":"a","signerName":"example.com/signer"}: only one of name and signerName may be used',
    ],
  ],
  [
    "a trust bundle without a name and a signerName is refused",
    {},
    ["bundle: Required value: either name or signerName must be specified"],
  ],
  [
    "an empty signerName is refused",
    { signerName: "" },
    ["bundle.signerName: Required value: must be a valid signer name", "bundle.signerName: Required value"],
  ],
  [
    "a signerName without a path is refused",
    { signerName: "example.com" },
    [
      "bundle.signerName: Invalid value: \"example.com\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
    ],
  ],
  [
    "a signerName with two paths is refused",
    { signerName: "example.com/a/b" },
    [
      "bundle.signerName: Invalid value: \"example.com/a/b\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
    ],
  ],
  [
    "a signerName whose domain has only one label is refused",
    { signerName: "example/a" },
    ['bundle.signerName: Invalid value: "example": should be a domain with at least two segments separated by dots'],
  ],
  [
    "a signerName with an invalid label in its domain is refused",
    { signerName: "example.Com.Org/a" },
    [
      "bundle.signerName: Invalid value: \"example.Com.Org\": validating label \"Com\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
    ],
  ],
  [
    "a signerName with an invalid label in its path is refused",
    { signerName: "example.com/a.B" },
    [
      "bundle.signerName: Invalid value: \"a.B\": validating label \"B\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
    ],
  ],
  [
    "a labelSelector with an invalid label key is refused",
    { signerName: "example.com/signer", labelSelector: { matchLabels: { "a b": "c" } } },
    [
      "bundle.labelSelector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  ],
  ["a trust bundle without a path is refused", { path: "", name: "a" }, ["bundle.path: Required value"]],
  [
    "a trust bundle whose path begins with two dots is refused",
    { path: "..a", name: "a" },
    ["bundle.path: Invalid value: \"..a\": must not start with '..'"],
  ],
];

const volumeOf = (...bundles: readonly Fields[]): Fields => ({
  projected: { sources: bundles.map((bundle) => ({ clusterTrustBundle: bundle })) },
});

describe("validation of a trust bundle:", () => {
  it.each(rows)("%s", (_sentence, bundle, errors) => {
    const found = errorsOfVolume(volumeOf({ path: "ca.pem", ...bundle }));
    expect(found.map((error) => error.replace("volume.projected.sources[0].clusterTrustBundle", "bundle"))).toEqual(
      errors,
    );
  });

  it("two trust bundles at the same path are refused", () => {
    const bundle = { path: "a", name: "a" };
    const errors = ['volume.projected: Invalid value: "a": conflicting duplicate paths'];
    expect(errorsOfVolume(volumeOf(bundle, bundle))).toEqual(errors);
  });
});
