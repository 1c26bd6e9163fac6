// Package view is what people and programs see of the market: plain structs with JSON names, made from the market's
// records. It decides nothing. Amounts of money are given twice, as an integer of millionths and as a decimal text.
package view
