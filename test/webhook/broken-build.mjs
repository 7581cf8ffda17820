/**
 * Loaded with --import, this module plants a bug: in a file whose path ends with BUG_IN it replaces BUG_FROM by BUG_TO.
 */
import { registerHooks } from "node:module";

const { BUG_IN = "", BUG_FROM = "", BUG_TO = "" } = process.env;

registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (!url.endsWith(BUG_IN)) return loaded;
    const source = String(loaded.source);
    if (!source.includes(BUG_FROM)) throw new Error(`${BUG_IN} has no ${BUG_FROM}`);
    return { ...loaded, source: source.replace(BUG_FROM, () => BUG_TO) };
  },
});
