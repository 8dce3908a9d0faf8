/** Lets components read and choose the theme. `earlyTheme.ts` applies it before the first paint. */
import { useSyncExternalStore } from "react"
import { applyTheme, keepTheme, themeChosen } from "./ThemeChoice.ts"
import type { Theme } from "./ThemeChoice.ts"

export const themes: ReadonlyArray<Theme> = ["system", "light", "dark"]
const listeners = new Set<() => void>()
const darkMedia = matchMedia("(prefers-color-scheme: dark)")

export const setTheme = (value: Theme): void => {
  keepTheme(value)
  applyTheme()
  for (const listener of listeners) listener()
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  darkMedia.addEventListener("change", listener)
  return () => {
    listeners.delete(listener)
    darkMedia.removeEventListener("change", listener)
  }
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, themeChosen)

/** Returns whether the dark theme is active. Canvas drawings need it, because CSS does not style them. */
export const useIsDark = (): boolean =>
  useSyncExternalStore(subscribe, () => (themeChosen() === "system" ? darkMedia.matches : themeChosen() === "dark"))
