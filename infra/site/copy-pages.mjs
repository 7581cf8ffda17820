/** Copies the site's files to `pages`, because Node finds the packages there, and not outside this folder. */
import { cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";

const ROOT = new URL("../../", import.meta.url);
const PAGES = new URL("pages/", import.meta.url);

rmSync(PAGES, { recursive: true, force: true });
mkdirSync(PAGES);
for (const name of readdirSync(ROOT)) if (name.endsWith(".md")) cpSync(new URL(name, ROOT), new URL(name, PAGES));
cpSync(new URL("docs", ROOT), new URL("docs", PAGES), { recursive: true });
