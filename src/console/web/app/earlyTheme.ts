/** A classic script that runs before the first paint, so that a dark page does not flash white. */
import { applyTheme } from "./ThemeChoice.ts"

applyTheme()
