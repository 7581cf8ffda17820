/** A certificate authority of its own for every cluster, and a server certificate for 127.0.0.1. */
import { isIP } from "node:net";
import { generate } from "selfsigned";

export interface Certificates {
  /** PEM */
  readonly authority: string;
  /** PEM */
  readonly certificate: string;
  /** PEM */
  readonly key: string;
}

/** Also serves webhooks of tests: one authority, certificates for localhost and one other address or name. */
export async function createCertificates(host = "127.0.0.1"): Promise<Certificates> {
  const common = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;
  const authority = await generate([{ name: "commonName", value: "kubernetes" }], {
    ...common,
    extensions: [
      { name: "basicConstraints", cA: true, critical: true },
      { name: "keyUsage", digitalSignature: true, keyCertSign: true, cRLSign: true, critical: true },
    ],
  });
  const server = await generate([{ name: "commonName", value: "kube-apiserver" }], {
    ...common,
    ca: { key: authority.private, cert: authority.cert },
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, keyEncipherment: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      {
        name: "subjectAltName",
        altNames: [
          { type: 2, value: "localhost" },
          { type: 2, value: "kubernetes" },
          { type: 7, ip: "127.0.0.1" },
          isIP(host) === 0 ? { type: 2, value: host } : { type: 7, ip: host },
        ],
      },
    ],
  });
  return { authority: authority.cert, certificate: server.cert, key: server.private };
}
