"use strict";

function theme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const set = (name) => {
    root.dataset.theme = name;
    button.textContent = name === "dark" ? "Light" : "Dark";
  };
  set(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  button.addEventListener("click", () => set(root.dataset.theme === "dark" ? "light" : "dark"));
}
