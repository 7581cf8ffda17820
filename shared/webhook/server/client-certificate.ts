/** A client certificate as a door hands it over: whose it is, and whether it is valid now. */
import { X509Certificate } from "node:crypto";

/**
 * True when the certificate is valid at that time (epoch milliseconds) and one of `names` is exactly its common name or
 * an alternative name.
 */
export function isCertificateOf(certificate: X509Certificate, names: readonly string[], now: number): boolean {
  if (now < Date.parse(certificate.validFrom) || now > Date.parse(certificate.validTo)) return false;
  const own = [...commonNames(certificate), ...alternativeNames(certificate)];
  return names.some((name) => own.includes(name));
}

/**
 * The only common name. Node prints one attribute a line and escapes special characters; a certificate with two common
 * names has none.
 */
function commonNames({ subject }: X509Certificate): readonly string[] {
  const names = (subject ?? "").split("\n").flatMap((line) => (line.startsWith("CN=") ? line.slice("CN=".length) : []));
  return names.length === 1 ? names : [];
}

/** `DNS:a, URI:b`; a value with special characters is printed as a JSON string, so no value can look like two. */
function alternativeNames({ subjectAltName }: X509Certificate): readonly string[] {
  const entries = (subjectAltName ?? "").matchAll(
    /(?:^|, )(?:DNS|URI|email|IP Address):("(?:[^"\\]|\\.)*"|[^,"]*)(?=, |$)/g,
  );
  return [...entries].map(([, value = ""]) => (value.startsWith('"') ? (JSON.parse(value) as string) : value));
}

/** One PEM block and nothing else: OpenSSL reads the first of several, whatever surrounds it. */
const ONE_PEM = /^-----BEGIN CERTIFICATE-----\r?\n(?:[A-Za-z0-9+/=]+\r?\n)+-----END CERTIFICATE-----(?:\r?\n)?$/;

/** undefined also for what is no certificate, or more than one. */
export function certificateIn(pem: string | undefined): X509Certificate | undefined {
  if (pem === undefined || !ONE_PEM.test(pem)) return undefined;
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
