/** Keeps only the part of client-node that reads a kubeconfig. The rest would be nine tenths of its size. */
import type { Plugin } from "esbuild";

/** Modules on the client's own way to a cluster, also through proxies: transport.ts and proxy.ts replace them. */
const NEVER_REACHED = /^(?:undici|socks|socks-proxy-agent|hpagent|\.\/gen\/(?:index|rxjsStub)\.js)$/;
const CLIENT_NODE = /[\\/]@kubernetes[\\/]client-node[\\/]/;

/** A plugin for esbuild. client-node's imports of left-out modules get undefined exports. */
export const kubeconfigOnly: Plugin = {
  name: "kubeconfig-only",
  setup: ({ onLoad, onResolve, resolve }) => {
    onResolve({ filter: /^@kubernetes\/client-node$/ }, () =>
      resolve("./node_modules/@kubernetes/client-node/dist/config.js", { kind: "import-statement", resolveDir: "." }),
    );
    onResolve({ filter: NEVER_REACHED }, ({ path, importer }) =>
      CLIENT_NODE.test(importer) ? { path, namespace: "left-out" } : undefined,
    );
    onLoad({ filter: /.*/, namespace: "left-out" }, () => ({ contents: "module.exports = {};" }));
  },
};
