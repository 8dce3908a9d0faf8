/**
 * The user's theme: light, dark or the system's, saved in the browser. This module imports nothing, because it runs before all others.
 */

export type Theme = "system" | "light" | "dark"

const stored = "console.theme"

export const themeChosen = (): Theme => {
  const value = localStorage.getItem(stored)
  return value === "light" || value === "dark" ? value : "system"
}

export const keepTheme = (value: Theme): void => {
  if (value === "system") localStorage.removeItem(stored)
  else localStorage.setItem(stored, value)
}

export const applyTheme = (): void => {
  const value = themeChosen()
  if (value === "system") delete document.documentElement.dataset["theme"]
  else document.documentElement.dataset["theme"] = value
}
