/** Makes client certificates of the tests' own authority, right ones and wrong ones. */
import { generate } from "selfsigned";

export interface ClientCertificate {
  /** the certificate as PEM */
  readonly cert: string;
  /** the key as PEM */
  readonly key: string;
}

interface Wish {
  readonly subject?: readonly { readonly name: string; readonly value: string }[];
  /** DNS names */
  readonly names?: readonly string[];
  readonly uris?: readonly string[];
  readonly from?: Date;
  readonly to?: Date;
}

const COMMON = { keyType: "ec", curve: "P-256", algorithm: "sha256" } as const;

export async function createAuthority() {
  const own = await generate([{ name: "commonName", value: "clients" }], {
    ...COMMON,
    extensions: [{ name: "basicConstraints", cA: true, critical: true }],
  });
  const sign = async ({ subject = [], names = [], uris = [], from, to }: Wish): Promise<ClientCertificate> => {
    const altNames = [
      ...names.map((value) => ({ type: 2 as const, value })),
      ...uris.map((value) => ({ type: 6 as const, value })),
    ];
    const { cert, private: key } = await generate([...subject], {
      ...COMMON,
      ca: { key: own.private, cert: own.cert },
      ...(from === undefined ? {} : { notBeforeDate: from }),
      ...(to === undefined ? {} : { notAfterDate: to }),
      extensions: [
        { name: "extKeyUsage", clientAuth: true },
        ...(altNames.length > 0 ? [{ name: "subjectAltName" as const, altNames }] : []),
      ],
    });
    return { cert, key };
  };
  return { authority: own.cert, sign };
}

export const commonName = (value: string) => [{ name: "commonName", value }];
