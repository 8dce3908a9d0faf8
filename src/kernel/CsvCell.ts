/** Writes cells of a CSV file (RFC 4180). */

/** Quotes a cell if it contains a quote, a line break, or a separator of any locale. */
export const quoted = (text: string): string => (/[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)

/** Characters that begin a formula in a spreadsheet, including the full-width forms that East Asian versions accept. */
const beginsFormula = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/

/** Writes a CSV cell (RFC 4180) that no spreadsheet treats as a formula. Text that begins like a formula gets a leading apostrophe. */
export const cell = (text: string): string => quoted(beginsFormula.test(text) ? `'${text}` : text)
