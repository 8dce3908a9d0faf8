/** A separate script, not a module. It runs before the first paint, so that a dark page does not flash. */
import { applyTheme } from "./ThemeChoice.ts"

applyTheme()
