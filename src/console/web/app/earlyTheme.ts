/** A classic script. It runs before the first paint, so a dark page does not flash white. */
import { applyTheme } from "./ThemeChoice.ts"

applyTheme()
