/** Decides whether a pod's certificate may be projected into a volume. Source: Kubernetes 1.36 validation. */
import type { PodCertificateProjection } from "../../../api/volume-source.ts";
import { type FieldError, invalid, notSupported, required } from "../../../go/field-error.ts";
import { validateNonReservedPath } from "./path.ts";

const KEY_TYPES = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];
const PATHS = ["credentialBundlePath", "keyPath", "certificateChainPath"] as const;
const SHORTEST_SECONDS = 3600;

export function validatePodCertificate(source: PodCertificateProjection, field: string): readonly FieldError[] {
  const { signerName = "", keyType = "", maxExpirationSeconds } = source;
  const paths = certificatePaths(source);
  return [
    ...(signerName === "" ? [required(`${field}.signerName`)] : []),
    ...(KEY_TYPES.includes(keyType) ? [] : [notSupported(`${field}.keyType`, keyType, KEY_TYPES)]),
    ...(maxExpirationSeconds !== undefined && maxExpirationSeconds < SHORTEST_SECONDS
      ? [
          invalid(
            `${field}.maxExpirationSeconds`,
            maxExpirationSeconds,
            `if provided, maxExpirationSeconds must be >= ${SHORTEST_SECONDS}`,
          ),
        ]
      : []),
    ...PATHS.flatMap((name) => (source[name] ? validateNonReservedPath(source[name], `${field}.${name}`) : [])),
    ...(paths.length === 0
      ? [required(field, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")]
      : []),
  ];
}

/** Paths that it writes in its volume. */
export function certificatePaths(source: PodCertificateProjection): readonly string[] {
  return PATHS.flatMap((name) => source[name] || []);
}
