/** Decides whether a ClusterTrustBundle may be projected into a volume as it is named. */
import type { ClusterTrustBundleProjection } from "../../../api/volume-source.ts";
import { type FieldError, invalid, invalidEach, quote, required, tooLong } from "../../../go/field-error.ts";
import { byteLength, dnsLabelErrors, dnsSubdomainErrors } from "../../../go/label-name.ts";
import { validateLabelSelector } from "../../admission/selector.ts";
import { validateNonReservedPath } from "./path.ts";

const DOMAIN_LIMIT = 253;
const SIGNER_LIMIT = 571;

/** `example.com:signer:name` belongs to the signer `example.com/signer`; without a colon it belongs to none. */
function bundleNameErrors(name: string): readonly string[] {
  const end = name.lastIndexOf(":");
  if (end === -1) return dnsSubdomainErrors(name);
  const signer = name.slice(0, end).replaceAll(":", "/");
  if (signer === "") return ['ClusterTrustBundle without signer name must not have ":" in its name'];
  const prefix = `${signer.replaceAll("/", ":")}:`;
  if (!name.startsWith(prefix)) {
    return [`ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`];
  }
  return dnsSubdomainErrors(name.slice(end + 1));
}

function firstLabelErrors(part: string, errorsOf: (label: string) => readonly string[]): readonly string[] {
  for (const label of part.split(".")) {
    const errors = errorsOf(label);
    if (errors.length > 0) return errors.map((error) => `validating label ${quote(label)}: ${error}`);
  }
  return [];
}

function validateSigner(signer: string, field: string): readonly FieldError[] {
  if (signer === "") return [required(field, "must be a valid signer name"), required(field)];
  const [domain = "", path, tooMany] = signer.split("/");
  if (path === undefined || tooMany !== undefined) {
    return [invalid(field, signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")];
  }
  const isShort = !domain.includes(".");
  return [
    ...(byteLength(domain) > DOMAIN_LIMIT ? [tooLong(field, DOMAIN_LIMIT)] : []),
    ...invalidEach(field, domain, firstLabelErrors(domain, dnsLabelErrors)),
    ...(isShort ? [invalid(field, domain, "should be a domain with at least two segments separated by dots")] : []),
    ...invalidEach(field, path, firstLabelErrors(path, dnsSubdomainErrors)),
    ...(byteLength(signer) > SIGNER_LIMIT ? [tooLong(field, SIGNER_LIMIT)] : []),
  ];
}

function validateNamed(bundle: ClusterTrustBundleProjection, name: string, field: string): readonly FieldError[] {
  const details = bundleNameErrors(name).map((error) => `not a valid clustertrustbundlename: ${error}`);
  const selected =
    bundle.labelSelector == null
      ? []
      : [invalid(`${field}.labelSelector`, bundle.labelSelector, "labelSelector must be unset if name is specified")];
  return [
    ...(name === "" ? [required(`${field}.name`, "must be a valid object name")] : []),
    ...invalidEach(`${field}.name`, name, details),
    ...selected,
  ];
}

function validateChoice(bundle: ClusterTrustBundleProjection, field: string): readonly FieldError[] {
  const { name, signerName, labelSelector } = bundle;
  if (name != null && signerName != null) {
    return [invalid(field, bundle, "only one of name and signerName may be used")];
  }
  if (name != null) return validateNamed(bundle, name, field);
  if (signerName == null) return [required(field, "either name or signerName must be specified")];
  return [
    ...validateSigner(signerName, `${field}.signerName`),
    ...validateLabelSelector(labelSelector, `${field}.labelSelector`),
  ];
}

export function validateTrustBundle(bundle: ClusterTrustBundleProjection, field: string): readonly FieldError[] {
  const { path = "" } = bundle;
  return [
    ...validateChoice(bundle, field),
    ...(path === "" ? [required(`${field}.path`)] : []),
    ...validateNonReservedPath(path, `${field}.path`),
  ];
}
