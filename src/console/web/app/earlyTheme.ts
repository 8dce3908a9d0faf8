/** Runs before the first paint, so that a page in the dark does not flash: a script of its own, which is no module. */
import { applyTheme } from "./ThemeChoice.ts"

applyTheme()
