/** Takes the picture in docs/report.png: `node test/page/picture.ts`. */
import { fileURLToPath } from "node:url";
import { renderPage } from "../../shared/core/inspect/report/page.ts";
import { openFile, startBrowser } from "./browser.ts";
import { contentOf, TROUBLED } from "./subjects.ts";

const FILE = fileURLToPath(new URL("../../docs/report.png", import.meta.url));

const browser = await startBrowser();
const { page } = await openFile(browser, renderPage(contentOf(TROUBLED)), { viewport: { width: 1000, height: 690 } });
await page.screenshot({ path: FILE });
await browser.close();
