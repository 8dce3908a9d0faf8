/** Runs before the first paint, so that a page in the dark does not flash. */
import { applyTheme } from "./Theme.ts"

applyTheme()
