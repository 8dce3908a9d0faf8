/** Light, dark, or as the system is. What was chosen is kept in this browser; `earlyTheme.ts` applies it before the first paint. */
import { useSyncExternalStore } from "react"

export type Theme = "system" | "light" | "dark"

export const themes: ReadonlyArray<Theme> = ["system", "light", "dark"]
const stored = "console.theme"
const listeners = new Set<() => void>()
const dark = matchMedia("(prefers-color-scheme: dark)")

export const theme = (): Theme => {
  const value = localStorage.getItem(stored)
  return value === "light" || value === "dark" ? value : "system"
}

export const setTheme = (value: Theme): void => {
  if (value === "system") localStorage.removeItem(stored)
  else localStorage.setItem(stored, value)
  applyTheme()
}

export const applyTheme = (): void => {
  const value = theme()
  if (value === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = value
  for (const listener of listeners) listener()
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  dark.addEventListener("change", listener)
  return () => {
    listeners.delete(listener)
    dark.removeEventListener("change", listener)
  }
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, theme)

/** Which of both it is now: what a canvas must know. */
export const useIsDark = (): boolean =>
  useSyncExternalStore(subscribe, () => (theme() === "system" ? dark.matches : theme() === "dark"))
