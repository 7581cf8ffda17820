/** Where the API server finds the webhooks. */

export interface WebhookAddress {
  /** https, without a path: https://webhooks.example.com */
  readonly url: string;
  /** PEM in base64; absent: a certificate authority that the API server trusts anyway */
  readonly caBundle?: string;
}

export function clientConfig({ url, caBundle }: WebhookAddress, path: string) {
  return { url: url.replace(/\/+$/, "") + path, ...(caBundle === undefined ? {} : { caBundle }) };
}
